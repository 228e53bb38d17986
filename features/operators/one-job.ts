import { REQUEST_TAG } from "../../core/author/index.ts";
import {
  currentJobOf,
  entryOfJob,
  newerGeneration,
  type OneJob,
  statusOf,
  timelineOf,
  viewOf,
} from "../../core/jobs/index.ts";
import { isRoot, STARTER_TAG, sizeOf, splitKey } from "../../core/resonate/index.ts";
import type { OperatorOptions } from "./options.ts";

/**
 * A job as operators see it, by its name in the log: what its caller sees, and its lease, versions and sizes. Arguments and
 * result only with `values`. Undefined where no job has this name.
 */
export async function oneJob(
  { store: jobs, client }: OperatorOptions,
  job: string,
  values: boolean,
  request: Request,
): Promise<OneJob | undefined> {
  const { signal } = request;
  const { key, name } = splitKey(job);
  const store = jobs.as({ key }, "");
  const promise = await store.get(name, signal);
  if (!promise) return undefined;
  const sizes: number[] = [];
  const get = async (id: string) => {
    const record = await store.child(id, signal);
    const n = Number(/\d+$/.exec(id)?.[0]);
    if (record && !isRoot(id)) sizes[n] = sizeOf(record);
    return record;
  };
  const [{ feed, questions }, newer, timeline, task] = await Promise.all([
    currentJobOf(store, promise, signal),
    newerGeneration(store, promise, signal),
    timelineOf(promise.id, 1, get),
    client.send("task.get", { id: promise.id }, { origin: promise.id, signal }).catch(() => undefined),
  ]);
  const { result, newer: _newer, ...view } = viewOf(name, promise);
  const { questions: _asked, ...doing } = feed.entry ?? { questions: {} };
  return {
    ...view,
    job,
    kind: promise.job.kind,
    ...(values && { args: promise.args, result }),
    deadline: new Date(promise.deadline).toISOString(),
    bytes: entryOfJob(promise, key).bytes,
    version: promise.version,
    deployed_version: promise.job.version,
    caller: key || (promise.record.tags[STARTER_TAG] ?? ""),
    request: promise.record.tags[REQUEST_TAG],
    doing,
    questions: [...questions].map(
      ([
        question,
        {
          question: { message },
        },
      ]) => ({ question, message }),
    ),
    lease: task?.status === 200 ? task.data.task : undefined,
    timeline: timeline.entries.map((entry) => ({ ...entry, bytes: sizes[entry.n] })),
    ...(newer && { newer: { job: key + newer.name, status: statusOf(newer) } }),
  };
}
