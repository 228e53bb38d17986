import PQueue from "p-queue";
import * as z from "zod";
import { NonRetryableError } from "../../core/author/context.ts";
import { type Job, NotStarted } from "../../core/author/job.ts";
import { Journal } from "../../core/engine/journal.ts";
import type { TaskLease } from "../../core/engine/lease/lease.ts";
import { readNewest } from "../../core/engine/runs.ts";
import { LeaseLost } from "../../core/engine/runtime.ts";
import type { RemoteStore } from "../../core/jobs/remote-store.ts";
import { startJob } from "../../core/jobs/start.ts";
import { STARTER } from "../../core/resonate/codec.ts";
import type { ResonateClient } from "../../core/resonate/connection/client.ts";
import type { PromiseRecord } from "../../core/resonate/connection/protocol.ts";
import { endOf } from "../../core/resonate/deadline.ts";
import { localId, splitKey } from "../../core/resonate/ids.ts";
import type { PromiseWatcher } from "../../worker/connection/promise-watcher.ts";
import { type LineLog, type Reports, reasonOf } from "../../worker/execution/instruments.ts";

/** How many child jobs this worker starts at once. */
const STARTS = 32;

const ignore = () => {};

interface ChildJobsOptions {
  client: ResonateClient;
  store: RemoteStore;
  watcher: PromiseWatcher;
  namespace: string;
  log: LineLog;
  reports?: Reports | undefined;
}

/** Starts jobs for durable functions, and gives them up when the function's own job is cancelled or times out. */
export class ChildJobs {
  readonly #options: ChildJobsOptions;
  readonly #starts = new PQueue({ concurrency: STARTS });

  constructor(options: ChildJobsOptions) {
    this.#options = options;
  }

  /** Starts a job on behalf of the job with the promise `id`, with the same `storage` limit for files; resolves with its name. */
  async start(
    { id, storage }: { id: string; storage: number },
    job: Job,
    args: unknown,
    signal: AbortSignal,
  ): Promise<string> {
    const { namespace } = this.#options;
    const store = this.#options.store.onBehalfOf(id, { storage });
    const child = await this.#starts.add(async () => {
      if (signal.aborted) throw new LeaseLost("the job is no longer run here");
      try {
        const child = await startJob(store, job, job.args.parse(args), Date.now());
        if (child.note !== undefined) this.#options.log.warn({ job: localId(id, namespace) }, child.note);
        return child;
      } catch (error) {
        if (!(error instanceof NotStarted || error instanceof z.ZodError)) throw error;
        throw new NonRetryableError(`${job.kind} was not started: ${error.message}`);
      }
    });
    this.#options.watcher.begun(child);
    this.#options.reports?.started(child.id);
    return child.name;
  }

  /** Gives up the children of a job if the job was cancelled or has timed out. */
  async giveUpIfEnded(parent: string, children: readonly string[]): Promise<void> {
    if (children.length === 0) return;
    try {
      const answer = await this.#options.client.send("promise.get", { id: parent }, { origin: parent });
      if (answer.status === 200 && hasNoResult(answer.data.promise)) await this.#giveUp(parent, children);
    } catch (error) {
      this.#options.log.debug({ reason: reasonOf(error) }, "child jobs not given up");
    }
  }

  /** Gives up the children in a job's journal, which is read under `lease`; resolves with their number. */
  async giveUpAll(parent: string, lease: TaskLease): Promise<number> {
    const journal = await readNewest(new Journal(), parent, (id) => lease.get(id));
    const children = [...(journal.run?.children ?? []), ...startedIn(journal)];
    await this.#giveUp(parent, children);
    return children.length;
  }

  /**
   * Whether a job's parent was cancelled or timed out and no other caller wants the job; if so, cancels the job. This catches
   * jobs that are missing in the parent's journal: a worker that dies may leave no record of the last job that it started.
   */
  async isGivenUp({ id, tags, createdAt }: PromiseRecord): Promise<boolean> {
    const { watcher, store, namespace } = this.#options;
    const starter = tags[STARTER];
    if (starter === undefined || splitKey(starter).name === "") return false;
    const parent = namespace + starter;
    const promise = await watcher.watch(parent, false, ignore, createdAt).catch(() => undefined);
    if (!promise || !hasNoResult(promise)) return false;
    const ended = await store
      .onBehalfOf(parent)
      .cancel(localId(id, namespace), true)
      .catch(() => undefined);
    return ended?.promise.state === "rejected_canceled";
  }

  async #giveUp(parent: string, children: readonly string[]): Promise<void> {
    const store = this.#options.store.onBehalfOf(parent);
    await this.#starts.addAll([...new Set(children)].map((name) => () => store.cancel(name, true)));
  }
}

/** The names of the jobs that were started by a journal's records. */
export const startedIn = ({ events }: Journal): string[] =>
  events.flatMap(({ event, value }) => (event.kind === "start" && typeof value === "string" ? [value] : []));

const hasNoResult = (promise: PromiseRecord) => /canceled|timedout/.test(endOf(promise));
