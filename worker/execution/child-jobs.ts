import PQueue from "p-queue";
import * as z from "zod";
import { NonRetryableError } from "../../core/definitions/context.ts";
import { type Job, NotStarted } from "../../core/definitions/job.ts";
import { LeaseLost } from "../../core/engine/execution.ts";
import { Journal } from "../../core/engine/journal.ts";
import type { TaskLease } from "../../core/engine/lease.ts";
import type { RemoteStore } from "../../core/jobs/remote-store.ts";
import { startJob } from "../../core/jobs/start.ts";
import type { ResonateClient } from "../../core/store/client.ts";
import { STARTER } from "../../core/store/codec.ts";
import { splitKey } from "../../core/store/ids.ts";
import type { PromiseRecord } from "../../core/store/protocol.ts";
import type { PromiseWatcher } from "../intake/promise-watch.ts";
import { type LineLog, reasonOf } from "./instruments.ts";

/** How many jobs are started at once by all that run here. */
const STARTS = 32;

interface StartedOptions {
  client: ResonateClient;
  store: RemoteStore;
  news: PromiseWatcher;
  namespace: string;
  /** The job a promise id names. */
  nameOf(id: string): string;
  log: LineLog;
}

/** Jobs that are started by jobs that run here, and given up with them. */
export class ChildJobs {
  readonly #options: StartedOptions;
  readonly #starts = new PQueue({ concurrency: STARTS });

  constructor(options: StartedOptions) {
    this.#options = options;
  }

  /** Starts another job on behalf of one that runs here. */
  async start(id: string, job: Job, args: unknown, signal: AbortSignal): Promise<string> {
    const store = this.#options.store.onBehalfOf(id);
    const started = await this.#starts.add(async () => {
      if (signal.aborted) throw new LeaseLost("the job is no longer run here");
      try {
        return await startJob(store, job, job.args.parse(args), Date.now());
      } catch (error) {
        if (!(error instanceof NotStarted || error instanceof z.ZodError)) throw error;
        throw new NonRetryableError(`${job.kind} was not started: ${error.message}`);
      }
    });
    return started.name;
  }

  /** Gives up what a job has started, when it has been cancelled or was not done in time. */
  async giveUpIfEnded(id: string, started: readonly string[]): Promise<void> {
    if (started.length === 0) return;
    try {
      const answer = await this.#options.client.send("promise.get", { id }, { origin: id });
      const state = answer.status === 200 ? answer.data.promise.state : "pending";
      if (state === "rejected_canceled" || state === "rejected_timedout") await this.#giveUp(id, started);
    } catch (error) {
      this.#options.log.debug({ reason: reasonOf(error) }, "what it started was not given up");
    }
  }

  /** Gives up what a job has started by its records, read under `lease`; resolves with how many jobs that were. */
  async giveUpAll(id: string, lease: TaskLease): Promise<number> {
    const history = new Journal();
    await history.load(id, (each) => lease.get(each));
    const started = history.events.flatMap(({ event, value }) =>
      event.kind === "start" && typeof value === "string" ? [value] : [],
    );
    await this.#giveUp(id, started);
    return started.length;
  }

  /**
   * Whether a job was started by one that has been cancelled, and nobody else wants it: it is cancelled then. A worker that
   * died may have left no record of what it started last.
   */
  async isGivenUp({ id, tags }: PromiseRecord): Promise<boolean> {
    const { news, store, nameOf, namespace } = this.#options;
    const starter = tags[STARTER];
    if (starter === undefined || splitKey(starter).name === "") return false;
    const parent = namespace + starter;
    const known = await news.watch(parent, false, () => {}).catch(() => undefined);
    if (known?.state !== "rejected_canceled" && known?.state !== "rejected_timedout") return false;
    return store
      .onBehalfOf(parent)
      .giveUp(nameOf(id))
      .catch(() => false);
  }

  async #giveUp(id: string, started: readonly string[]): Promise<void> {
    const store = this.#options.store.onBehalfOf(id);
    await this.#starts.addAll([...new Set(started)].map((name) => () => store.giveUp(name)));
  }
}
