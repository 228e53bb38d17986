/** Gives each new job of a kind with `concurrency` its position among the jobs with the same key. */
import type { JobFeature, Orders } from "../../core/jobs/index.ts";

/** The positions that are known to this process, shared by its requests. */
export function order(): JobFeature {
  const orders: Orders = new Map();
  return {
    async start(start, next) {
      const { job, name, existing, tags, jobs } = start;
      if (!job.concurrency || existing || (await jobs.get(name))) return next();
      const { takePosition } = await import("./position.ts");
      Object.assign(tags, await takePosition(start, orders));
      return next();
    },
  };
}
