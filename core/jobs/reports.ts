/** What workers report to the edge. Nothing depends on reports, which may get lost. A shared key gives both sides the token. */

import { base64ToBytes, bytesToBase64 } from "../resonate/base64.ts";
import { STARTER_TAG } from "../resonate/codec.ts";
import type { ResonateClient } from "../resonate/connection/client.ts";
import type { PromiseRecord } from "../resonate/connection/protocol.ts";
import { localId, splitKey } from "../resonate/ids.ts";
import { claimantsOf } from "./claims.ts";
import type { WorkerReport } from "./worker-report.ts";

/** The path of reports at the edge. */
export const REPORTS_PATH = "reports";

/** The header by which an edge says that it has no operators, and so nobody reads about workers. */
export const NO_OPERATORS_HEADER = "durable-mcp-unread";

/** The largest batch, in bytes. */
export const MAX_REPORT = 1_000_000;

/** Promise ids of jobs, by the keys of the callers to tell about them. */
type IdsByCaller = Record<string, string[]>;

/** A reported job: its promise if a server of the same account reports it, otherwise only the promise's id. */
export type ReportedJob = string | PromiseRecord;

/** One request's reports: a field for each kind of report. */
export interface Batch {
  ended?: IdsByCaller;
  /** Jobs that durable functions have started, each for the caller of the function's own job. */
  started?: IdsByCaller;
  /** For operators. */
  worker?: WorkerReport;
}

/** The keys of the callers to tell about a job's end: its own caller, or all who started a shared job. */
export async function callersOf(
  { id, tags }: PromiseRecord,
  client: ResonateClient,
  namespace: string,
): Promise<Set<string>> {
  const starter = tags[STARTER_TAG];
  if (starter === undefined) return new Set([splitKey(localId(id, namespace)).key]);
  const claimants = [starter, ...(await claimantsOf(client, id))];
  return new Set(claimants.filter((claimant) => splitKey(claimant).name === "" && claimant !== ""));
}

const TOKEN_PURPOSE = new TextEncoder().encode("reports");

const importKey = (secret: string) => {
  const algorithm = { name: "HMAC", hash: "SHA-256" };
  return crypto.subtle.importKey("raw", new TextEncoder().encode(secret), algorithm, false, ["sign", "verify"]);
};

/** The token of a worker, derived from the key that seals links and callbacks. */
export async function reportToken(secret: string): Promise<string> {
  return bytesToBase64(new Uint8Array(await crypto.subtle.sign("HMAC", await importKey(secret), TOKEN_PURPOSE)));
}

/** Whether a text is that token. Takes the same time for any text, so that it reveals nothing about the token. */
export async function isReportToken(secret: string, token: string): Promise<boolean> {
  try {
    return await crypto.subtle.verify("HMAC", await importKey(secret), base64ToBytes(token), TOKEN_PURPOSE);
  } catch {
    return false;
  }
}
