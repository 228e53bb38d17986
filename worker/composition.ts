/** Creates and connects the objects that execute tasks, for the worker process and for the runner inside Cloudflare Workers. */

import type { Job } from "../core/author/job.ts";
import type { StepFeature } from "../core/engine/step-feature.ts";
import type { JobFeature } from "../core/jobs/job-feature.ts";
import { RemoteStore } from "../core/jobs/remote-store.ts";
import type { StoreEndpoint } from "../core/resonate/connection/endpoint.ts";
import type { LeaseRef } from "../core/resonate/connection/protocol.ts";
import { ServerRules } from "../core/resonate/connection/server-rules.ts";
import { localId, splitGeneration, splitKey } from "../core/resonate/ids.ts";
import { atMostOnce } from "../features/at-most-once/step.ts";
import { claims } from "../features/claims/start.ts";
import { cleanUp } from "../features/clean-up/start.ts";
import type { FetchPublic } from "../features/files/attempt-files.ts";
import { type FileLocation, KeptFiles } from "../features/files/kept-files.ts";
import { files as attemptFiles } from "../features/files/step.ts";
import { labels } from "../features/labels/start.ts";
import { leaseCheck } from "../features/lease-check/step.ts";
import { reportStarts } from "../features/operators/start.ts";
import type { ReportStart } from "../features/operators/starts.ts";
import { order } from "../features/order/start.ts";
import { Pauses } from "../features/pauses/pauses.ts";
import { resume } from "../features/resume/start.ts";
import { retention } from "../features/retention/start.ts";
import { Limits } from "../features/step-limits/limits.ts";
import { stepLimits } from "../features/step-limits/step.ts";
import { storageLimit } from "../features/storage-limit/start.ts";
import { jobStorageLimit } from "../features/storage-limit/step.ts";
import { trace } from "../features/trace/start.ts";
import { PromiseWatcher } from "./connection/promise-watcher.ts";
import { Executor } from "./execution/executor.ts";
import { Heartbeat, now } from "./execution/heartbeat.ts";
import type { SetupOptions } from "./execution/job-setup.ts";
import { JournalCache } from "./execution/journal-cache.ts";

type Given = "client" | "implementations" | "env" | "leaseTime" | "log" | "instruments" | "reports";

interface CompositionOptions extends Pick<SetupOptions, Given> {
  endpoint: StoreEndpoint;
  /** Those of the process around an attempt at a step; none in Workers. */
  attempts?: readonly StepFeature[];
  /** Fetches files that clients give by their address; undefined where nothing can guard against private addresses. */
  fetchPublic?: FetchPublic | undefined;
  /** Where files are kept; undefined in a deployment that keeps none. */
  fileLocation: FileLocation | undefined;
  /** Bounds on memory in bytes, for the journals of sleeping jobs and for watched promises. */
  memory?: { journals: number; promises: number };
}

export type Composition = ReturnType<typeof compose>;

/** @throws {Error} naming the variables that an implementation needs and the environment lacks */
export function compose({ endpoint, fileLocation, fetchPublic, attempts = [], memory, ...given }: CompositionOptions) {
  const { client, implementations, leaseTime, log, instruments, reports } = given;
  const { namespace } = endpoint;
  const pid = crypto.randomUUID();
  const watcher = new PromiseWatcher(client, leaseTime, memory?.promises);
  const rules = new ServerRules(client, namespace);
  const heartbeat = new Heartbeat(client, pid, leaseTime);
  const pauses = new Pauses(client, namespace, leaseTime);
  const jobs = implementations.map(({ job }) => job);
  const files = fileLocation && new KeptFiles(fileLocation);
  const journals = new JournalCache(memory?.journals);
  const by = { key: "", requestId: "", traceparent: () => instruments.surroundingSpan() };
  const store = RemoteStore.of(endpoint, jobs, childFeatures(jobs, reports?.figures.started), { by, client });
  const limits = new Limits({ client, watcher, leaseTime, namespace });
  /** What features do around steps, in the order in which they act: an attempt that waits begins only when it may. */
  const steps: StepFeature[] = [
    stepLimits((...asked) => limits.take(...asked)),
    attemptFiles({ kept: files, fetchPublic }),
    leaseCheck(heartbeat),
    atMostOnce,
    ...attempts,
    jobStorageLimit,
  ];
  const executor = new Executor({ ...given, steps, store, watcher, rules, heartbeat, pauses, journals, namespace });
  /** The kind of job that a promise id is about, for metrics; `unknown` for a kind that is not implemented here. */
  const kindOf = (id: string): string => {
    const { base } = splitGeneration(splitKey(localId(id, namespace)).name);
    return jobs.find((job) => job.owns(base))?.kind ?? "unknown";
  };
  /** Takes the lease on a task and keeps it alive; undefined if the task has another version, or its job has ended. */
  const acquire = async ({ id, version }: LeaseRef, patience?: number) => {
    const askedAt = now();
    const data = { id, version, pid, ttl: leaseTime, records: journals.recordsWanted({ id, version }) };
    const answer = await client.send("task.acquire", data, { origin: id, patience });
    if (answer.status !== 200) return undefined;
    heartbeat.start(answer.data.task, askedAt);
    return answer.data;
  };
  /** The versions of the kinds that it runs. */
  const kinds = Object.fromEntries(jobs.map(({ kind, version }) => [kind, version]));
  return {
    ...{ client, pid, leaseTime, namespace, implementations, kindOf, kinds, acquire, watcher, rules, heartbeat },
    ...{ executor, files, log, reports },
  };
}

/** What features do to the jobs that durable functions start and cancel, in the order in which they act. */
function childFeatures(jobs: readonly Job[], reportStart: ReportStart | undefined): JobFeature[] {
  const some = (uses: (job: Job) => unknown) => jobs.some(uses);
  const features: (JobFeature | false | undefined)[] = [
    reportStart && reportStarts(reportStart),
    labels,
    some(({ shared }) => shared) && claims,
    some(({ keepFor }) => keepFor !== undefined) && retention,
    resume,
    // Moves the time-out, which a position has as well.
    cleanUp,
    some(({ concurrency }) => concurrency) && order(),
    trace,
    storageLimit(),
  ];
  return features.filter((feature) => typeof feature === "object");
}
