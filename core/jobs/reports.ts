/** What workers report to the edge: never needed, and partly lost. Both sides derive the token from a key that they share. */
import { base64ToBytes, bytesToBase64 } from "../store/base64.ts";
import { STARTER } from "../store/codec.ts";
import type { ResonateClient } from "../store/connection/client.ts";
import type { PromiseRecord } from "../store/connection/protocol.ts";
import { localId, splitKey } from "../store/ids.ts";
import type { WorkerReport } from "./operating/worker-report.ts";
import { claimantsOf } from "./starting/claims.ts";

/** The path at the edge. */
export const REPORTS = "reports";

/** The header of an answer from an edge without operators, who are all that read about workers. */
export const UNREAD = "durable-mcp-unread";

/** The largest batch, in bytes. */
export const MAX_REPORT = 1_000_000;

/** Promise ids of jobs, by the keys of the callers who are to hear of them. */
type IdsByCaller = Record<string, string[]>;

/** A job as it is reported: its promise as the server has it, by a server of the same account, or its promise's id. */
export type Reported = string | PromiseRecord;

/** One request's reports: a field for each kind of report. */
export interface Batch {
  ended?: IdsByCaller;
  /** Jobs that a durable function has started, for the caller of its own job alone. */
  started?: IdsByCaller;
  /** For operators. */
  worker?: WorkerReport;
}

/** The keys of the callers who wait for a job's end: of its own, or of those who started a shared one. */
export async function callersOf(
  { id, tags }: PromiseRecord,
  client: ResonateClient,
  namespace: string,
): Promise<Set<string>> {
  const starter = tags[STARTER];
  if (starter === undefined) return new Set([splitKey(localId(id, namespace)).key]);
  const claimants = [starter, ...(await claimantsOf(client, id))];
  return new Set(claimants.filter((claimant) => splitKey(claimant).name === "" && claimant !== ""));
}

const PURPOSE = new TextEncoder().encode("reports");

const imported = (secret: string) => {
  const algorithm = { name: "HMAC", hash: "SHA-256" };
  return crypto.subtle.importKey("raw", new TextEncoder().encode(secret), algorithm, false, ["sign", "verify"]);
};

/** The token of a worker, by the key that seals links and callbacks. */
export async function reportToken(secret: string): Promise<string> {
  return bytesToBase64(new Uint8Array(await crypto.subtle.sign("HMAC", await imported(secret), PURPOSE)));
}

/** Whether a text is that token. The time that it takes says nothing of the token. */
export async function isReportToken(secret: string, shown: string): Promise<boolean> {
  try {
    return await crypto.subtle.verify("HMAC", await imported(secret), base64ToBytes(shown), PURPOSE);
  } catch {
    return false;
  }
}
