/** Creates and connects the objects that execute tasks, for the worker process and for the runner inside Cloudflare Workers. */
import type { Implementation } from "../core/author/implement.ts";
import type { FetchPublic } from "../core/jobs/files/attempt-files.ts";
import { type FileLocation, KeptFiles } from "../core/jobs/files/kept-files.ts";
import { RemoteStore } from "../core/jobs/remote-store.ts";
import type { ResonateClient } from "../core/store/connection/client.ts";
import type { StoreEndpoint } from "../core/store/connection/endpoint.ts";
import { ServerRules } from "../core/store/connection/server-rules.ts";
import { localId, splitGeneration, splitKey } from "../core/store/ids.ts";
import { PromiseWatcher } from "./connection/promise-watcher.ts";
import { Executor } from "./execution/executor.ts";
import { Heartbeat } from "./execution/heartbeat.ts";
import type { Instruments, LineLog, Reports } from "./execution/instruments.ts";
import { JournalCache } from "./execution/journal-cache.ts";
import { Pauses } from "./intake/pauses.ts";

interface CompositionOptions {
  client: ResonateClient;
  endpoint: StoreEndpoint;
  implementations: readonly Implementation[];
  /** The variables that the implementations read. */
  env: Readonly<Record<string, string | undefined>>;
  lease: number;
  log: LineLog;
  instruments: Instruments;
  reports?: Reports | undefined;
  /** Where files are kept; undefined in a deployment that keeps none. */
  fileLocation: FileLocation | undefined;
  /** Fetches files that clients give by their address; undefined where nothing can guard against private addresses. */
  fetchPublic?: FetchPublic;
  /** Bounds on memory in bytes, for the journals of sleeping jobs and for watched promises. */
  memory?: { journals: number; promises: number };
}

export type Composition = ReturnType<typeof compose>;

/** @throws {Error} naming the variables that an implementation needs and the environment lacks */
export function compose({ client, endpoint, implementations, env, lease, log, ...more }: CompositionOptions) {
  const { instruments, memory, reports, fileLocation, fetchPublic } = more;
  const { namespace } = endpoint;
  const pid = crypto.randomUUID();
  const watcher = new PromiseWatcher(client, memory?.promises);
  const rules = new ServerRules(client, namespace);
  const heartbeat = new Heartbeat(client, pid, lease);
  const pauses = new Pauses(client, namespace, lease);
  const jobs = implementations.map(({ job }) => job);
  const files = fileLocation && new KeptFiles(fileLocation);
  const journals = new JournalCache(memory?.journals);
  /** The kind of job that a promise id is about, for metrics; `unknown` for a kind that is not implemented here. */
  const kindOf = (id: string): string => {
    const { base } = splitGeneration(splitKey(localId(id, namespace)).name);
    return jobs.find((job) => job.owns(base))?.kind ?? "unknown";
  };
  const executor = new Executor({
    implementations,
    files,
    fetchPublic,
    env,
    client,
    store: new RemoteStore(
      endpoint,
      jobs,
      { trace: instruments.surroundingSpan, tellStart: reports?.figures.started },
      client,
    ),
    watcher,
    rules,
    heartbeat,
    lease,
    journals,
    namespace,
    log,
    instruments,
    reports,
  });
  return {
    ...{ client, pid, lease, namespace, implementations, kindOf, watcher, rules, heartbeat, pauses },
    ...{ executor, journals, files, log, reports },
  };
}
