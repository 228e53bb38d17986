import PQueue from "p-queue";
import * as z from "zod";
import { type Job, NonRetryableError, NotStarted } from "../../core/author/index.ts";
import { type ChildStart, Journal, LeaseLost, readNewest, type TaskLease } from "../../core/engine/index.ts";
import {
  type DurablePromise,
  type JobRun,
  newestGeneration,
  type RemoteStore,
  startJob,
} from "../../core/jobs/index.ts";
import {
  localId,
  PARENT_TAG,
  type PromiseRecord,
  type PromiseWatch,
  splitGeneration,
} from "../../core/resonate/index.ts";

/** How many child jobs this worker starts or ends at once. */
const MAX_CONCURRENT_REQUESTS = 32;

const ignore = () => {};

interface ChildJobsOptions {
  store: RemoteStore;
  watcher: PromiseWatch;
  namespace: string;
}

/** Starts jobs for durable functions, and ends them if the function's own job ends without a result. */
export class ChildJobs {
  readonly #options: ChildJobsOptions;
  readonly #requests = new PQueue({ concurrency: MAX_CONCURRENT_REQUESTS });
  /** The newest start or end under way, by the promise ids of the parents and the names of the jobs without a generation. */
  readonly #turns = new Map<string, Promise<unknown>>();

  constructor(options: ChildJobsOptions) {
    this.#options = options;
  }

  /** Starts a job on behalf of another. @throws {LeaseLost} @throws {NonRetryableError} */
  async start(run: JobRun, job: Job, args: unknown, options: ChildStart): Promise<DurablePromise> {
    const { promise, stop } = run;
    try {
      const parsedArgs = job.args.parse(args);
      const name = await job.name(parsedArgs);
      const endsChildren = options.whenParentEnds === "cancel";
      return await this.#inTurn(promise.id, name, async () => {
        if (endsChildren) await options.begin(name);
        return this.#requests.add(async () => {
          if (stop.signal.aborted) throw new LeaseLost("the job is no longer run here", { reason: "ended" });
          return this.#create(run, job, parsedArgs, { ...options, endsChildren });
        });
      });
    } catch (error) {
      if (!(error instanceof NotStarted || error instanceof z.ZodError)) throw error;
      throw new NonRetryableError(`${job.kind} was not started: ${error.message}`);
    }
  }

  /** One after another: a start must not find a job that is about to end, and an end must not miss one that is about to start. */
  #inTurn<T>(parent: string, name: string, request: () => Promise<T>): Promise<T> {
    const key = `${parent} ${name}`;
    const turn = (this.#turns.get(key) ?? Promise.resolve()).then(request);
    const isOver = turn.then(ignore, ignore).then(() => {
      if (this.#turns.get(key) === isOver) this.#turns.delete(key);
    });
    this.#turns.set(key, isOver);
    return turn;
  }

  async #create(
    { promise, call }: JobRun,
    job: Job,
    args: unknown,
    { ifExists, endsChildren }: ChildStart & { endsChildren: boolean },
  ): Promise<DurablePromise> {
    // The child may store as many bytes of files.
    const store = this.#options.store.onBehalfOf(promise.id, { storage: call.storage ?? 0, endsChildren });
    const otherArguments = ifExists === "join" || job.otherArguments === "accept" ? "accept" : "refuse";
    const child = await startJob(store, job, args, Date.now(), otherArguments);
    this.#options.watcher.noteCreated(child);
    return child;
  }

  /** Cancels a job that `parent` started, unless other callers have started it too. */
  async cancel(parent: string, name: string): Promise<void> {
    await this.#options.store.onBehalfOf(parent).cancel(name);
  }

  /**
   * Cancels a job if it ends with `parent`. `name`: with its generation, or without it if its start may not have ended.
   * `isWhole`: whether later generations of the name end as well.
   */
  end(parent: string, name: string, isWhole = false): Promise<void> {
    const { base, generation } = splitGeneration(name);
    return this.#inTurn(parent, base, () =>
      this.#requests.add(() => this.#end(parent, name, { base, generation, isWhole })),
    );
  }

  async #end(
    parent: string,
    name: string,
    { base, generation, isWhole }: { base: string; generation: number; isWhole: boolean },
  ): Promise<void> {
    const store = this.#options.store.onBehalfOf(parent);
    const tag = localId(parent, this.#options.namespace);
    // Whoever wants a shared job has claimed it.
    const isChild = ({ job, record }: DurablePromise) => job.shared || record.tags[PARENT_TAG] === tag;
    let promise = await store.get(name);
    if (promise && (isWhole || !isChild(promise)))
      ({ promise } = await newestGeneration(store, base, promise, { generation }));
    if (promise?.state === "pending" && isChild(promise)) await endOrGiveUp(store, promise);
  }

  /** Cancels the jobs that end with a job which has ended, or is about to end. */
  async endAll(parent: string, children: readonly string[]): Promise<void> {
    await Promise.all([...new Set(children)].map((name) => this.end(parent, name, true)));
  }

  /** Ends the children in a job's journal, which is read under `lease`; resolves with their number. */
  async endAllOf(parent: string, lease: TaskLease): Promise<number> {
    const { children } = await readNewest(new Journal(), parent, (id) => lease.get(id));
    await this.endAll(parent, children);
    return children.length;
  }

  /**
   * Whether a job's parent has ended without a result; if so, cancels the job. This catches jobs that nobody else ends: the parent
   * has timed out while no worker ran, or was cancelled while its worker started them.
   */
  async endIfParentHas(promise: PromiseRecord): Promise<boolean> {
    const { watcher, store, namespace } = this.#options;
    const starter = promise.tags[PARENT_TAG];
    if (starter === undefined) return false;
    const parent = namespace + starter;
    const ofParent = await watcher.watch(parent, false, ignore, promise.createdAt).catch(() => undefined);
    if (!ofParent || !hasNoResult(ofParent)) return false;
    const ofChild = store.onBehalfOf(parent);
    const child = await ofChild.get(ofChild.names.nameIn(promise.id)).catch(ignore);
    const cancelled = child && (await endOrGiveUp(ofChild, child).catch(ignore));
    return cancelled?.promise.state === "rejected_canceled";
  }
}

/** Cancels a child; a shared one goes on if others want it. */
const endOrGiveUp = (store: RemoteStore, child: DurablePromise) =>
  child.job.shared ? store.cancel(child.name) : store.end(child);

/** Whether a job has failed, was cancelled or has timed out. */
const hasNoResult = ({ state }: PromiseRecord) => state.startsWith("rejected");
