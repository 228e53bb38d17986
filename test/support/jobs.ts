import type { Job } from "../../core/author/job.ts";
import { tools } from "../../tools/index.ts";

/** The jobs that the product's tools start. */
export const JOBS: readonly Job[] = [...new Set(tools.flatMap(({ job }) => job ?? []))];
