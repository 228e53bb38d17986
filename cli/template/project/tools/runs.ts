/** The durable function of every tool; only workers and runners import them. */
import type { Implementation } from "durable-mcp-edge";
import { waitForSiteRun } from "./wait-for-site/wait-for-site.run.ts";

export const runs: readonly Implementation[] = [waitForSiteRun];
