/** Lets a job begin when it is its turn among the jobs with its key. */
import type { WorkerFeature } from "../../core/feature.ts";
import { turnOf } from "./turn.ts";

export const awaitTurn: WorkerFeature = {
  name: "order",
  isFor: ({ concurrency }) => concurrency !== undefined,
  async run(run, next) {
    const { promise, lease, memory, code } = run;
    const { concurrency, cleanupTime } = code.implementation.job;
    const hasBegun = memory.journal.run !== undefined || memory.journal.events.length > 0;
    if (!concurrency || hasBegun) return next();
    const terms = { limit: concurrency.limit, cleanupTimeMs: cleanupTime };
    for (;;) {
      const ahead = await turnOf(promise, terms, lease, Date.now());
      if (ahead === "now") return next();
      if (ahead === "late") {
        const error = new Error("its start took so long that later jobs have passed it: start it again");
        return run.conclude({ kind: "failed", error });
      }
      if (await run.sleep(ahead, "waiting for its turn")) return run.conclude({ kind: "asleep" });
    }
  },
};
