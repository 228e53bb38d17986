/** The product's edge, with the fixture jobs and tools besides its own. */
import { createApp } from "../../functions/app.ts";
import { JOBS } from "../../functions/jobs/index.ts";
import { TOOLS } from "../../functions/tools/index.ts";
import { CONTENT_TOOLS } from "./content-tools.ts";
import { FIXTURE_JOBS } from "./jobs.ts";
import { TASK_TOOLS } from "./task-tools.ts";

export default createApp({
  jobs: [...JOBS, ...FIXTURE_JOBS],
  tools: [...TOOLS, ...TASK_TOOLS, ...CONTENT_TOOLS],
});
