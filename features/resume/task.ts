/** Hands the finished steps of an earlier attempt to the attempt that resumes it. */
import type { JournalRecord } from "../../core/engine/journal.ts";
import { Journal } from "../../core/engine/journal.ts";
import type { TaskLease } from "../../core/engine/lease/lease.ts";
import { nameIn } from "../../core/engine/replay/commands/commands.ts";
import { readNewest } from "../../core/engine/runs.ts";
import type { WorkerFeature } from "../../core/feature.ts";
import { firstSeed, type Resumption } from "../../core/jobs/durable-promise.ts";
import type { JobRun } from "../../core/jobs/task-feature.ts";
import { decodeValue, EARLIER } from "../../core/resonate/codec.ts";
import { localId, resumptionId, splitKey } from "../../core/resonate/ids.ts";
import { stepsToKeep } from "./steps-to-keep.ts";

/** What the first run of a job takes over from the attempt that it resumes. */
interface EarlierAttempt {
  /** The steps that are kept of that attempt. */
  memo: ReadonlyMap<string, JournalRecord>;
  /** The arguments of its last run, if that was not the first. */
  args?: unknown;
  /** The seed of that run. */
  seed?: string;
}

declare module "../../core/jobs/task-feature.ts" {
  interface JobMemory {
    earlierAttempt?: EarlierAttempt;
  }
}

/** `namespace`: that of the promise ids. */
export const resume = (namespace: string): WorkerFeature => ({
  name: "resume",
  async run(run, next) {
    const { promise, memory, runtime } = run;
    const earlier = promise.tags[EARLIER];
    if (earlier === undefined) return next();
    if (memory.journal.run) {
      // Only the first run takes steps over.
      delete memory.earlierAttempt;
      return next();
    }
    memory.earlierAttempt ??= await earlierAttempt(earlier, run, namespace);
    const { memo, seed = runtime.seed, ...last } = memory.earlierAttempt;
    Object.assign(runtime, { memo, seed });
    Object.assign(run, last);
    return next();
  },
});

/** Reads what a job takes over, and records once, with the job, whether it resumes and why not. */
async function earlierAttempt(earlier: string, run: JobRun, namespace: string): Promise<EarlierAttempt> {
  const { lease, log } = run;
  const journal = await readNewest(new Journal(), earlier, (id) => lease.get(id));
  const kept = await stepsToKeep(journal.events, async (path) => {
    const awaited = run.runtime.promiseOf(nameIn(path));
    return awaited === undefined ? undefined : (await lease.get(awaited))?.state;
  });
  const { name } = splitKey(localId(earlier, namespace));
  const id = resumptionId(run.promise.id);
  const known = await lease.get(id);
  const record = known ?? (await lease.create(id, await resumptionOf(earlier, name, journal, kept, lease), "resolved"));
  const { seed, ...resumption } = decodeValue(record.param) as Resumption & { seed?: string };
  if (!known) log.info(resumption, "from" in resumption ? "job resumed" : "job began anew");
  if (!("from" in resumption) || typeof kept === "string") return { memo: new Map() };
  return { memo: kept, ...(journal.run && { args: journal.run.args }), ...(seed !== undefined && { seed }) };
}

/** How a job begins that is to resume the attempt `name`, of which these steps are kept, or none for a reason. */
async function resumptionOf(
  earlier: string,
  name: string,
  journal: Journal,
  kept: ReadonlyMap<string, JournalRecord> | string,
  lease: TaskLease,
): Promise<Resumption> {
  if (typeof kept === "string") return { anew: `${name} ${kept}` };
  // The kept steps may hold random values of the earlier attempt.
  const seed = journal.run?.seed ?? (await firstSeed(await lease.get(earlier), (each) => lease.get(each)));
  return { from: name, ...(seed !== undefined && { seed }) };
}
