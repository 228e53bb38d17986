import type { Middleware } from "../../core/tools/index.ts";
import type { Pages } from "./sessions.ts";

/** Gives the requests of this server's pages the token of their browser's session. */
export const useBrowserSession = (pages: Pages): Middleware =>
  async function useSession(c, next) {
    c.req.raw = await pages.withSession(c.req.raw);
    return next();
  };
