/** Receives workers' reports: `POST /reports`, with the token that edge and workers derive from `VIEW_KEY`. */
import * as z from "zod";
import {
  isReportToken,
  JOB_FORMAT_HEADER,
  JOB_FORMAT_VERSION,
  MAX_REPORT,
  NO_OPERATORS_HEADER,
  type ReportedJob,
  WAIT_STATES,
  type WorkerReport,
} from "../../core/jobs/index.ts";
import { jsonOf, readBytes } from "../../core/resonate/index.ts";
import type { Visit } from "../../core/tools/index.ts";
import { bearerIn } from "../../functions/auth/secret.ts";

const Ids = z.record(z.string(), z.array(z.string())).default({});
const count = z.number().nonnegative();
const Worker = z.object({
  worker: z.string(),
  n: count,
  group: z.string(),
  connected: z.boolean(),
  form: count,
  kinds: z.record(z.string(), count),
  slots: z.object({ running: count, waiting: z.number(), most: count }),
  counts: z.array(z.tuple([z.string(), z.string(), count])),
  failed: z.array(
    z.object({
      job: z.string(),
      kind: z.string(),
      reason: z.string(),
      stack: z.string().exactOptional(),
      at: count,
    }),
  ),
  waits: z.array(
    z.object({
      job: z.string(),
      kind: z.string(),
      state: z.enum(WAIT_STATES).exactOptional(),
      says: z.string().exactOptional(),
    }),
  ),
  slowest: z.array(z.tuple([z.string(), z.string(), count])),
});
const Batch = z.object({ ended: Ids, started: Ids, worker: Worker.exactOptional() });

const answer = (status: number, error: string) => Response.json({ error }, { status });

export interface ReportOptions {
  /** The key that edge and workers share; undefined if no reports are accepted. */
  key: string | undefined;
  /** Records jobs of a caller that have ended, or that durable functions have started. */
  record(caller: string, ended: readonly ReportedJob[], started: readonly ReportedJob[]): Promise<void>;
  /** Passes a worker's own report on to operators; undefined in a deployment without operators. */
  report: ((report: WorkerReport) => Promise<unknown>) | undefined;
}

/** Passes reports on to the objects of the callers whom they concern. The body of a request without the token is not read. */
export async function receive(c: Visit, { key, record, report }: ReportOptions): Promise<Response> {
  const request = c.req.raw;
  if (request.method !== "POST") return answer(404, "Not found.");
  const token = bearerIn(request.headers);
  if (!key || !token || !(await isReportToken(key, token)))
    return answer(401, "Reports are accepted from workers alone.");
  const body = await readBytes(request, MAX_REPORT);
  if (body === 413) return answer(413, `A body has up to ${MAX_REPORT} bytes.`);
  if (body === 408) return answer(408, "The body did not arrive in time.");
  const { data } = Batch.safeParse(jsonOf(new TextDecoder().decode(body)));
  if (!data) return answer(400, "The body is not a batch of reports.");
  const { ended, started, worker } = data;
  const keys = [...new Set([...Object.keys(ended), ...Object.keys(started)])];
  // An object that misses a report finds the change at a later look.
  await Promise.allSettled(keys.map((key) => record(key, ended[key] ?? [], started[key] ?? [])));
  // After an error the worker reports again.
  if (worker) await report?.(worker);
  const headers = { [JOB_FORMAT_HEADER]: `${JOB_FORMAT_VERSION}`, ...(!report && { [NO_OPERATORS_HEADER]: "worker" }) };
  return new Response(null, { status: 204, headers });
}
