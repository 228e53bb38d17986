import { randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import type { TaskRecord } from "@resonatehq/sdk";
import PQueue from "p-queue";
import { splitKey } from "../functions/caller.ts";
import { splitGeneration } from "../functions/jobs/index.ts";
import type { Config } from "./config.ts";
import { type Acquired, Engine } from "./engine.ts";
import type { DurableFunction } from "./functions/durable.ts";
import { type Logger, reasonOf } from "./logger.ts";
import { handedBack, running, waiting } from "./metrics.ts";
import { Network, type Offer } from "./network.ts";

/** How many waiting offers of a kind are handed back at once when the worker stops. */
const HAND_BACK = 16;

/** The longest that handing back may take, in milliseconds. */
const HAND_BACK_TIME = 3_000;

/** Takes jobs from the Resonate server and runs them, a bounded number of each kind at once, until `stop`. */
export class Worker {
  readonly #config: Config;
  readonly #log: Logger;
  readonly #pid = randomUUID();
  readonly #lease: number;
  readonly #network: Network;
  readonly #engine: Engine;
  readonly #functions: readonly DurableFunction[];
  /** A queue for each kind of job, so that one kind that waits, for a slow archive or for jobs of another, holds up no other. */
  readonly #queues = new Map<DurableFunction | undefined, PQueue>();
  /** Offers that wait for a place, by task: one that is made again replaces the one before. */
  readonly #offers = new Map<string, Offer>();
  /** Tasks this worker has the lease on, each with its kind of job. */
  readonly #held = new Map<TaskRecord, string>();
  #stopping = false;

  constructor(config: Config, functions: readonly DurableFunction[], log: Logger) {
    const { RESONATE_URL: url, RESONATE_TOKEN: token, RESONATE_GROUP: group } = config;
    const pid = this.#pid;
    this.#config = config;
    this.#log = log;
    this.#lease = config.LEASE_SECONDS * 1000;
    this.#functions = functions;
    this.#network = new Network({ url, token, group, pid, patience: this.#lease, log });
    const { send } = this.#network;
    this.#engine = new Engine({ functions, pid, lease: this.#lease, send, nameOf: (id) => this.#nameOf(id), log });
  }

  /** Whether jobs can arrive at the moment. */
  get connected(): boolean {
    return this.#network.connected;
  }

  /** How many jobs are executing. */
  get running(): number {
    return this.#held.size;
  }

  get stopping(): boolean {
    return this.#stopping;
  }

  /** Begins to take jobs; resolves once the first can arrive. */
  start(): Promise<void> {
    return new Promise((resolve) => void this.#network.listen((offer) => this.#consider(offer), resolve));
  }

  /** Takes no new jobs, lets running ones finish for `DRAIN_SECONDS`, then hands back the rest for another worker. */
  async stop(): Promise<void> {
    this.#stopping = true;
    this.#network.close();
    const queues = [...this.#queues.values()];
    for (const queue of queues) queue.concurrency += HAND_BACK; // for offers still waiting, even when every place is taken
    const idle = Promise.all(queues.map((queue) => queue.onIdle()));
    await Promise.race([idle, delay(this.#config.DRAIN_SECONDS * 1000)]);
    const released = Promise.allSettled([...this.#held.keys()].map((task) => this.#release(task)));
    await Promise.race([released, delay(HAND_BACK_TIME)]);
    this.#engine.stop();
  }

  #consider(offer: Offer): void {
    const isWaiting = this.#offers.has(offer.id);
    this.#offers.set(offer.id, offer);
    if (isWaiting) return;
    const { job, queue } = this.#queueFor(offer.id);
    waiting.inc({ job });
    void queue.add(async () => {
      const latest = this.#offers.get(offer.id) ?? offer;
      this.#offers.delete(offer.id);
      waiting.dec({ job });
      const acquired = await this.#acquire(latest);
      if (!acquired) return;
      const { task } = acquired;
      this.#held.set(task, job);
      running.inc({ job });
      if (this.#stopping) await this.#release(task);
      else await this.#engine.execute(acquired, job);
      this.#held.delete(task);
      running.dec({ job });
    });
  }

  #queueFor(id: string) {
    const { base } = splitGeneration(splitKey(this.#nameOf(id)).name);
    const kind = this.#functions.find(({ owns }) => owns(base));
    const queue = this.#queues.get(kind) ?? new PQueue({ concurrency: this.#config.MAX_TASKS });
    this.#queues.set(kind, queue);
    return { job: kind?.name ?? "unknown", queue };
  }

  /** Takes the lease on an offered task; nothing when another worker has it or the job has ended meanwhile. */
  async #acquire({ id, version }: Offer): Promise<Acquired | undefined> {
    try {
      const data = { id, version, pid: this.#pid, ttl: this.#lease };
      const answer = await this.#network.send({ kind: "task.acquire", head: head(id), data });
      return answer.head.status === 200 && typeof answer.data === "object" ? answer.data : undefined;
    } catch (error) {
      // The server offers the task again: after half a minute, or when the lease it gave unheard has lapsed.
      this.#log.debug({ job: this.#nameOf(id), reason: reasonOf(error) }, "offer not taken");
      return undefined;
    }
  }

  /** Ends a lease, so that the server offers the task to another worker at once. */
  async #release(task: TaskRecord): Promise<void> {
    const { id, version } = task;
    const job = this.#nameOf(id);
    try {
      const answer = await this.#network.send({ kind: "task.release", head: head(id), data: { id, version } });
      if (answer.head.status !== 200) return;
      this.#log.info({ job }, "job handed back");
      handedBack.inc({ job: this.#held.get(task) ?? "unknown" });
    } catch (error) {
      this.#log.warn({ job, reason: reasonOf(error) }, "job not handed back");
    }
  }

  /** The job's name: its promise id without the deployment's namespace, so with the key of the caller it belongs to. */
  #nameOf(id: string): string {
    const namespace = this.#config.RESONATE_NAMESPACE;
    return id.startsWith(namespace) ? id.slice(namespace.length) : id;
  }
}

function head(origin: string) {
  return { corrId: randomUUID(), version: "2026-04-01", "resonate:origin": origin };
}
