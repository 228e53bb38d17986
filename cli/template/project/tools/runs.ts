/** The durable function of every tool; only what runs jobs imports them. */
import type { Implementation } from "durable-mcp-edge";
import { waitForSiteRun } from "./wait-for-site/wait-for-site.run.ts";

export const runs: readonly Implementation[] = [waitForSiteRun];
