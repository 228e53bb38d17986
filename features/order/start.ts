/** Gives each new job of a kind with `concurrency` its position among the jobs with the same key. */
import { hashed } from "../../core/author/job.ts";
import type { JobFeature } from "../../core/jobs/job-feature.ts";
import type { Orders } from "../../core/jobs/order.ts";
import { orderId } from "../../core/resonate/ids.ts";

/** The positions that are known to this process, shared by its requests. */
export function order(): JobFeature {
  const orders: Orders = new Map();
  return {
    async start({ job, name, id, args, timeoutAt, existing, tags, jobs }, next) {
      if (!job.concurrency || existing || (await jobs.get(name))) return next();
      const { positionIn } = await import("../../core/jobs/order.ts");
      const chain = orderId(jobs.endpoint.namespace, job.kind, await hashed(job.concurrency.key(args)));
      Object.assign(tags, await positionIn(chain, jobs.client, { id, timeoutAt }, orders));
      return next();
    },
  };
}
