/** Hands the finished steps of an earlier attempt to the attempt that resumes it. */
import { Journal, type JournalRecord, nameIn, readNewest } from "../../core/engine/index.ts";
import type { WorkerFeature } from "../../core/feature.ts";
import { firstSeed, type JobRun, type Resumption } from "../../core/jobs/index.ts";
import { decodeValue, localId, RESUMES_TAG, resumptionId, splitKey } from "../../core/resonate/index.ts";
import { resumedSteps } from "./step.ts";
import { stepsToKeep } from "./steps-to-keep.ts";

/** What the first run of a job takes over from the attempt that it resumes. */
interface EarlierAttempt {
  /** The steps that are kept of that attempt. */
  finishedSteps: ReadonlyMap<string, JournalRecord>;
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
export const resumeTasks = (namespace: string): WorkerFeature => ({
  name: "resume",
  async run(run, next) {
    const { promise, memory, runtime } = run;
    const earlier = promise.tags[RESUMES_TAG];
    if (earlier === undefined) return next();
    if (memory.journal.run) {
      // Only the first run takes steps over.
      delete memory.earlierAttempt;
      return next();
    }
    memory.earlierAttempt ??= await earlierAttempt(earlier, run, namespace);
    const { finishedSteps, seed = runtime.seed, ...last } = memory.earlierAttempt;
    const steps = [resumedSteps(finishedSteps), ...runtime.steps];
    Object.assign(runtime, { steps, seed });
    Object.assign(run, last);
    return next();
  },
});

/** Reads what a job takes over, and records once, with the job, whether it resumes and why not. */
async function earlierAttempt(earlier: string, run: JobRun, namespace: string): Promise<EarlierAttempt> {
  const { lease, log } = run;
  const journal = await readNewest(new Journal(), earlier, (id) => lease.get(id));
  const keptSteps = await stepsToKeep(journal.events, async (path) => {
    const awaitedId = run.runtime.promiseOf(nameIn(path));
    return awaitedId === undefined ? undefined : (await lease.get(awaitedId))?.state;
  });
  const { name } = splitKey(localId(earlier, namespace));
  const id = resumptionId(run.promise.id);
  const known = await lease.get(id);
  const begin = async (): Promise<Resumption> => {
    if (typeof keptSteps === "string") return { anew: `${name} ${keptSteps}` };
    // The kept steps may hold random values of the earlier attempt.
    const ofEarlier = async () => firstSeed((await lease.get(earlier)) ?? run.promise, (each) => lease.get(each));
    return { from: name, seed: journal.run?.seed ?? (await ofEarlier()) };
  };
  const record = known ?? (await lease.create(id, await begin(), "resolved"));
  const resumption = decodeValue(record.param) as Resumption;
  const isResumed = "from" in resumption;
  if (!known)
    log.info(isResumed ? { from: resumption.from } : resumption, isResumed ? "job resumed" : "job began anew");
  if (!isResumed || typeof keptSteps === "string") return { finishedSteps: new Map() };
  return { finishedSteps: keptSteps, seed: resumption.seed, ...(journal.run && { args: journal.run.args }) };
}
