import * as z from "zod";
import type { Assets } from "../../functions/http/assets.ts";
import { binding } from "../../functions/http/variables.ts";

export const pageVariables = {
  /** The files of the pages. */
  ASSETS: binding<Assets>(),
  /** Seals links to jobs and sessions of browsers; at least 32 characters. If callers sign in, there are neither without it. */
  VIEW_KEY: z.string().min(32).optional(),
  /** `off`: tools return no links to jobs, and earlier links are void. */
  VIEW_LINKS: z.enum(["on", "off"]).default("on"),
};
