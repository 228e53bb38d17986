/** The position of a new job among those with the same key. */
import { hashed } from "../../core/author/index.ts";
import { type JobStart, type Orders, positionIn } from "../../core/jobs/index.ts";
import { orderId } from "../../core/resonate/index.ts";

/** The tags of the job's position, which it takes; none for a kind without `concurrency`. */
export async function takePosition({ job, id, args, timeoutAt, jobs }: JobStart, orders: Orders) {
  if (!job.concurrency) return {};
  const chain = orderId(jobs.endpoint.namespace, job.kind, await hashed(job.concurrency.key(args)));
  return positionIn(chain, jobs.client, { id, timeoutAt }, orders);
}
