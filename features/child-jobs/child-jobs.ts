import PQueue from "p-queue";
import * as z from "zod";
import { type Job, NonRetryableError, NotStarted, type StartOptions } from "../../core/author/index.ts";
import { Journal, LeaseLost, readNewest, type TaskLease } from "../../core/engine/index.ts";
import {
  type DurablePromise,
  type JobRun,
  type LineLog,
  parentOf,
  type RemoteStore,
  reasonOf,
  startJob,
} from "../../core/jobs/index.ts";
import {
  endOf,
  localId,
  type PromiseRecord,
  type PromiseWatch,
  type ResonateClient,
} from "../../core/resonate/index.ts";

/** How many child jobs this worker starts or gives up at once. */
const MAX_CONCURRENT_REQUESTS = 32;

const ignore = () => {};

interface ChildJobsOptions {
  client: ResonateClient;
  store: RemoteStore;
  watcher: PromiseWatch;
  namespace: string;
  log: LineLog;
}

/** Starts jobs for durable functions, and gives them up when the function's own job is cancelled or times out. */
export class ChildJobs {
  readonly #options: ChildJobsOptions;
  readonly #requests = new PQueue({ concurrency: MAX_CONCURRENT_REQUESTS });

  constructor(options: ChildJobsOptions) {
    this.#options = options;
  }

  /** Starts a job on behalf of another. @throws {LeaseLost} @throws {NonRetryableError} */
  async start(
    { promise, call, stop }: JobRun,
    job: Job,
    args: unknown,
    { ifExists }: StartOptions,
  ): Promise<DurablePromise> {
    const otherArguments = ifExists === "join" || job.otherArguments === "accept" ? "accept" : "refuse";
    // The child may store as many bytes of files.
    const store = this.#options.store.onBehalfOf(promise.id, { storage: call.storage ?? 0 });
    const child = await this.#requests.add(async () => {
      if (stop.signal.aborted) throw new LeaseLost("the job is no longer run here", { reason: "ended" });
      try {
        return await startJob(store, job, job.args.parse(args), Date.now(), otherArguments);
      } catch (error) {
        if (!(error instanceof NotStarted || error instanceof z.ZodError)) throw error;
        throw new NonRetryableError(`${job.kind} was not started: ${error.message}`);
      }
    });
    this.#options.watcher.noteCreated(child);
    return child;
  }

  /** Cancels a job that `parent` started, unless other callers have started it too. */
  async cancel(parent: string, name: string): Promise<void> {
    await this.#options.store.onBehalfOf(parent).cancel(name);
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
    const children = [...(journal.run?.children ?? []), ...journal.startedJobs];
    await this.#giveUp(parent, children);
    return children.length;
  }

  /**
   * Whether a job's parent was cancelled or timed out and no other caller wants the job; if so, cancels the job. This catches
   * jobs that are missing in the parent's journal: a worker that dies may leave no record of the last job that it started.
   */
  async isGivenUp(promise: PromiseRecord): Promise<boolean> {
    const { watcher, store, namespace } = this.#options;
    const starter = parentOf(promise);
    if (starter === undefined) return false;
    const parent = namespace + starter;
    const ofParent = await watcher.watch(parent, false, ignore, promise.createdAt).catch(() => undefined);
    if (!ofParent || !hasNoResult(ofParent)) return false;
    const cancelled = await store
      .onBehalfOf(parent)
      .cancel(localId(promise.id, namespace), true)
      .catch(() => undefined);
    return cancelled?.promise.state === "rejected_canceled";
  }

  async #giveUp(parent: string, children: readonly string[]): Promise<void> {
    const store = this.#options.store.onBehalfOf(parent);
    await this.#requests.addAll([...new Set(children)].map((name) => () => store.cancel(name, true)));
  }
}

const hasNoResult = (promise: PromiseRecord) => /canceled|timedout/.test(endOf(promise));
