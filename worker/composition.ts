/** Creates and connects the objects that execute tasks, for the worker process and for the runner inside Cloudflare Workers. */

import { RemoteStore } from "../core/jobs/remote-store.ts";
import type { StoreEndpoint } from "../core/resonate/connection/endpoint.ts";
import type { LeaseRef } from "../core/resonate/connection/protocol.ts";
import { ServerRules } from "../core/resonate/connection/server-rules.ts";
import { localId, splitGeneration, splitKey } from "../core/resonate/ids.ts";
import { type FileLocation, KeptFiles } from "../features/files/kept-files.ts";
import { Pauses } from "../features/pauses/pauses.ts";
import { PromiseWatcher } from "./connection/promise-watcher.ts";
import { Executor } from "./execution/executor.ts";
import { Heartbeat, now } from "./execution/heartbeat.ts";
import type { SetupOptions } from "./execution/job-setup.ts";
import { JournalCache } from "./execution/journal-cache.ts";

type Given = "client" | "implementations" | "env" | "leaseTime" | "log" | "instruments" | "reports" | "fetchPublic";

interface CompositionOptions extends Pick<SetupOptions, Given> {
  endpoint: StoreEndpoint;
  /** Where files are kept; undefined in a deployment that keeps none. */
  fileLocation: FileLocation | undefined;
  /** Bounds on memory in bytes, for the journals of sleeping jobs and for watched promises. */
  memory?: { journals: number; promises: number };
}

export type Composition = ReturnType<typeof compose>;

/** @throws {Error} naming the variables that an implementation needs and the environment lacks */
export function compose({ endpoint, fileLocation, memory, ...given }: CompositionOptions) {
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
  const tracing = { trace: instruments.surroundingSpan, tellStart: reports?.figures.started };
  const store = new RemoteStore(endpoint, jobs, tracing, client);
  const executor = new Executor({ ...given, files, store, watcher, rules, heartbeat, pauses, journals, namespace });
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
