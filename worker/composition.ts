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
import { Pauses } from "./intake/pauses.ts";

interface CompositionOptions {
  client: ResonateClient;
  endpoint: StoreEndpoint;
  implementations: readonly Implementation[];
  /** The variables that the implementations read. */
  env: Readonly<Record<string, string | undefined>>;
  namespace: string;
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
export function compose({
  client,
  endpoint,
  implementations,
  env,
  namespace,
  lease,
  log,
  ...more
}: CompositionOptions) {
  const { instruments, memory, reports, fileLocation, fetchPublic } = more;
  const pid = crypto.randomUUID();
  const names = new JobNames(namespace, implementations);
  const watcher = new PromiseWatcher(client, memory?.promises);
  const rules = new ServerRules(client, namespace);
  const heartbeat = new Heartbeat(client, pid, lease);
  const pauses = new Pauses(client, namespace, lease);
  const jobs = implementations.map(({ job }) => job);
  const files = fileLocation && new KeptFiles(fileLocation);
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
    maxJournalSize: memory?.journals,
    namespace,
    nameOf: names.nameOf,
    log,
    instruments,
    reports,
  });
  return { client, pid, lease, names, watcher, rules, heartbeat, pauses, executor, files, log, reports };
}

/** Derives a job's name and kind from its promise id. */
class JobNames {
  readonly #namespace: string;
  readonly #implementations: readonly Implementation[];

  constructor(namespace: string, implementations: readonly Implementation[]) {
    this.#namespace = namespace;
    this.#implementations = implementations;
  }

  /** The job's name: its promise id without the deployment's namespace, and with the key of its caller. */
  nameOf = (id: string): string => localId(id, this.#namespace);

  /** The kind of job, for metrics; `unknown` for a kind that is not implemented here. */
  kindOf(id: string): string {
    const { base } = splitGeneration(splitKey(this.nameOf(id)).name);
    return this.#implementations.find(({ job }) => job.owns(base))?.job.kind ?? "unknown";
  }
}
