/** Checks whether this product works with a Resonate server. */
import { encodeValue, lineage } from "./codec.ts";
import type { ResonateClient } from "./connection/client.ts";
import { journalEntryId } from "./ids.ts";

/** The release of the Resonate server whose database the operator's commands know, and the releases that jobs run on. */
export const SUPPORTED_RELEASE = "0.9.8";
export const SUPPORTED_RELEASES = "0.9.8 or 0.10";

/** Why a server cannot be used, in words for its operator. */
export interface SupportProblem {
  reason: "token" | "release";
  message: string;
}

/**
 * Creates a promise of the kind that jobs consist of, already timed out; the server keeps one for each namespace. Resolves to
 * undefined when the server accepts it, and also when the server cannot be reached or is busy.
 */
export async function checkSupport(client: ResonateClient, namespace: string): Promise<SupportProblem | undefined> {
  // The id has a dot and a separator, as ids of jobs and their children do.
  const job = `${namespace}support_0.9`;
  const id = journalEntryId(job, 0);
  const tags = { ...lineage(id), "resonate:timer": "true" };
  let answer: Response;
  let text: string;
  try {
    answer = await client.post("promise.create", { id, timeoutAt: 1, param: encodeValue(undefined), tags });
    text = (await answer.text()).slice(0, 2_000);
  } catch {
    return undefined;
  }
  if (answer.status === 401 || answer.status === 403) {
    const message = `the Resonate server refuses RESONATE_TOKEN${answer.status === 403 ? ` in the namespace ${namespace || "(none)"}` : ""}`;
    return { reason: "token", message };
  }
  if (answer.status !== 400 && answer.status !== 422 && answer.status !== 404) return undefined;
  const reported = /"data":"((?:[^"\\]|\\.){1,300})/.exec(text)?.[1];
  return {
    reason: "release",
    message: `what answers is not a Resonate server of release ${SUPPORTED_RELEASES}, which are supported: it answers ${answer.status}${reported ? `, ${reported}` : ""}`,
  };
}
