/** What the routes for browsers need. */
import type { Caller } from "../../core/author/index.ts";
import type { RemoteStore } from "../../core/jobs/index.ts";
import type { Middleware } from "../../core/tools/index.ts";
import type { RefusalOf } from "../../functions/auth/admission.ts";
import type { Auth } from "../../functions/auth/auth.ts";
import type { RateLimit } from "../../functions/http/limits.ts";
import type { Pages } from "./sessions.ts";

export interface PageOptions {
  pages: Pages;
  store: RemoteStore;
  /** What admits callers. */
  admission: readonly Middleware[];
  limit: RateLimit | undefined;
  authorize: Auth["authorize"];
  refusalOf: RefusalOf;
  /** The files that a value refers to, for the caller; with `job`, only the files of that job and its generations. */
  filesIn(value: unknown, caller: Caller, job?: string): Promise<object[]>;
  /** Who receives events of the caller's jobs, or of one `job`. First ends the subscription `end`. */
  subscribers?: ((caller: Caller, job?: string, end?: string) => Promise<object>) | undefined;
}

export const NOT_HERE = {
  error: "Only a page of this server may; it signs in where sessions are switched on (VIEW_KEY).",
};
