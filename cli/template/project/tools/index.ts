/** Every tool, in the order in which they are listed. */
import type { Tool } from "durable-mcp-edge";
import { waitForSite } from "./wait-for-site/wait-for-site.ts";

export const tools: readonly Tool[] = [waitForSite];
