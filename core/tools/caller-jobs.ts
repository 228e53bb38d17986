import type { RemoteStore } from "../jobs/remote-store.ts";
import { checkReadable, newestGeneration, startJob } from "../jobs/start.ts";
import { startedOf } from "./job-tool.ts";
import type { Jobs } from "./tool.ts";

/** The jobs of the caller whom the store acts for, as a tool uses them. */
export function callerJobs(store: RemoteStore, now: number, signal: AbortSignal): Jobs {
  return {
    start: async (job, args) => startedOf(await startJob(store, job, args, now)),
    async find(job, args) {
      const base = await job.name(args);
      const first = await store.get(base, signal);
      if (!first) return undefined;
      const { promise } = await newestGeneration(store, base, first);
      checkReadable(promise, args);
      return startedOf(promise);
    },
    async answer(jobName, question, answer) {
      const promise = await store.get(jobName, signal);
      if (promise?.state !== "pending") return "closed";
      const { entry } = await store.feeds.newest(promise, signal);
      if (!entry) return "notAsked";
      const open = Object.hasOwn(entry.questions, question) ? entry.questions[question] : undefined;
      if (!open) return "closed";
      return (await store.feeds.answer(open.promiseId, answer)) ? "answered" : "closed";
    },
  };
}
