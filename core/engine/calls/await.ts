import type { ChildJob } from "../../author/context.ts";
import { MAX_JOB_NAME_LENGTH, type Scope } from "./scope.ts";

/** Which promise it is that the command waits for is found out later: see `Awaitables.locate`. */
export const awaitJob = <T>(scope: Scope, job: string | ChildJob<T>): Promise<T> =>
  scope.issue("await", typeof job === "string" ? job : job?.name, () => {}, { maxNameLength: MAX_JOB_NAME_LENGTH });
