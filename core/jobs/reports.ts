/** What workers report to the edge: never needed, and partly lost. Both sides derive the token from a key that they share. */
import { base64ToBytes, bytesToBase64 } from "../store/base64.ts";
import type { WorkerReport } from "./operating/worker-report.ts";

/** The path at the edge. */
export const REPORTS = "reports";

/** The largest batch, in bytes. */
export const MAX_REPORT = 1_000_000;

/** Promise ids of jobs, by the keys of the callers who are to hear of them. */
export type IdsByCaller = Record<string, string[]>;

/** One request's reports: a field for each kind of report. */
export interface Batch {
  /** Jobs that have ended. */
  ended?: IdsByCaller;
  /** Jobs that a durable function has started, for the caller of its own job alone. */
  started?: IdsByCaller;
  /** For operators. */
  worker?: WorkerReport;
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
