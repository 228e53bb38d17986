/** The product's worker, with the fixture jobs besides its own. */
import { JOBS } from "../../functions/jobs/index.ts";
import { RemoteStore } from "../../functions/resonate/store.ts";
import { durableFunctions } from "../../worker/functions/index.ts";
import { OpenMeteo } from "../../worker/open-meteo.ts";
import { runWorker } from "../../worker/run.ts";
import { fixtureFunctions } from "./functions.ts";
import { FIXTURE_JOBS } from "./jobs.ts";

await runWorker((config) => {
  const store = new RemoteStore(config, [...JOBS, ...FIXTURE_JOBS]);
  const archive = new OpenMeteo({ url: config.WEATHER_API_URL, timeout: 10_000, concurrency: 8 });
  return [...durableFunctions(archive, store), ...fixtureFunctions(store)];
});
