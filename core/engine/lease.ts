/** The lease on a job's task, as the server's protocol has it. */
import { encodeValue, lineage } from "../store/codec.ts";
import { isChildOf, leaseWakeupId } from "../store/ids.ts";
import type { Acquired, PromiseRecord, TaskRecord } from "../store/protocol.ts";
import { machineClock } from "./clock.ts";
import { type Lease, LeaseLost, type When } from "./runtime.ts";

/** Sends one request; a server that is away for a moment is asked again, for as long as the lease may last. */
export type Send = (kind: string, data: object, origin: string) => Promise<{ status: number; data: unknown }>;

/** A task this worker has a lease on, with its promise, and what a server that gives more has given of its records. */
export interface HeldTask extends Partial<Pick<Acquired, "preload" | "records">> {
  task: Pick<TaskRecord, "id" | "version">;
  promise: PromiseRecord;
}

/** News may bring the promise as it is now; without it, it is looked at. */
export type Watch = (
  id: string,
  fresh: boolean,
  onNews: (promise?: PromiseRecord) => void,
) => Promise<PromiseRecord | undefined>;

/**
 * Servers after 0.9.8 refuse to suspend a task on promises of other jobs. Then it is suspended on a promise of its own,
 * which whoever hears of one of the others settles, and which ends by itself after a while: after half a minute, or a
 * tenth of the job's age, an hour at most. In milliseconds.
 */
const LOOK = { first: 30_000, share: 0.1, longest: 3_600_000 };

/** The statuses with which a suspension is refused. */
const REFUSALS = [400, 403, 422];

/** Whether the server of this process is known to refuse it: then it is not tried again. */
let isKnownToRefuse = false;

export class TaskLease implements Lease {
  readonly id: string;
  readonly version: number;
  readonly #deadline: number;
  readonly #createdAt: number;
  readonly #send: Send;
  readonly #watch: Watch;
  readonly #now: () => number;
  /** What came with the task, as it was then. */
  readonly #given: ReadonlyMap<string, PromiseRecord>;
  /** From which number on all records came with it. */
  readonly #givenFrom: number;
  readonly #watched = new Set<string>();
  #unheard: Promise<boolean> | undefined;
  onNews: (promise?: PromiseRecord) => void = () => {};

  /** `watch` gives a promise, and calls back when there is news of it; where no news can come it just reads. */
  constructor({ task, promise, preload = [], records }: HeldTask, send: Send, watch?: Watch, { now } = machineClock) {
    this.id = task.id;
    this.version = task.version;
    this.#deadline = promise.timeoutAt;
    this.#createdAt = promise.createdAt;
    this.#send = send;
    this.#watch = watch ?? ((id) => this.get(id));
    this.#now = now;
    this.#given = new Map(preload.map((each) => [each.id, each]));
    this.#givenFrom = records || Number.POSITIVE_INFINITY;
  }

  async create(id: string, param: unknown, when: When): Promise<PromiseRecord> {
    // A timer that is past its time is there resolved from the beginning, with what it says as its parameter: one
    // request for what would be two. No target: no worker has to get a promise that only settles.
    const timeoutAt = when === "resolved" ? this.#now() - 1 : when === "open" ? this.#deadline : when.due;
    const tags = { ...lineage(this.id, id), ...(when !== "open" && { "resonate:timer": "true" }) };
    const action = { kind: "promise.create", data: { id, timeoutAt, param: encodeValue(param), tags } };
    const answer = (await this.#ask("task.fence", { action })) as { action: { data: { promise: PromiseRecord } } };
    return answer.action.data.promise;
  }

  /** The job's record of this number, as it was when the task was taken. */
  async record(id: string, n: number): Promise<PromiseRecord | undefined> {
    return n < this.#givenFrom ? this.get(id) : this.#given.get(id);
  }

  async get(id: string): Promise<PromiseRecord | undefined> {
    const given = this.#given.get(id);
    if (given && given.state !== "pending") return given;
    const { status, data } = await this.#send("promise.get", { id }, this.id);
    if (status === 404) return undefined;
    if (status !== 200) throw new LeaseLost(`the server answered ${status} to promise.get`);
    return (data as { promise: PromiseRecord }).promise;
  }

  async watch(id: string, fresh: boolean): Promise<PromiseRecord | undefined> {
    this.#unheard ??= this.#wasUnheard();
    const isFirst = !this.#watched.has(id);
    this.#watched.add(id);
    return this.#watch(id, fresh || (isFirst && (await this.#unheard)), (promise) => this.onNews(promise));
  }

  /** Whether the job sleeps no longer because its time was up, and not because of news: then any may have been missed. */
  async #wasUnheard(): Promise<boolean> {
    if (this.version < 2 || !isKnownToRefuse) return false;
    const bell = await this.get(this.#bell(this.version - 1));
    return bell !== undefined && bell.value.data === undefined;
  }

  async suspend(ids: readonly string[]): Promise<boolean> {
    const others = ids.filter((id) => !isChildOf(this.id, id));
    if (others.length === 0 || !isKnownToRefuse) {
      const outcome = await this.#suspend(ids, others.length > 0);
      if (outcome !== "refused") return outcome === "asleep";
      isKnownToRefuse = true;
    }
    const bell = this.#bell(this.version);
    const now = this.#now();
    const look = Math.min(Math.max(LOOK.first, (now - this.#createdAt) * LOOK.share), LOOK.longest);
    await this.create(bell, undefined, { due: Math.ceil(now + look) });
    const own = ids.filter((id) => !others.includes(id));
    if ((await this.#suspend([...own, bell], false)) !== "asleep") return false;
    const ring = () => {
      const data = { id: bell, state: "resolved", value: encodeValue("heard") };
      // What cannot be told now is found when the time is up.
      this.#send("promise.settle", data, this.id).catch(() => {});
    };
    for (const id of others) {
      const promise = await this.#watch(id, false, ring).catch(() => undefined);
      if (promise && promise.state !== "pending") {
        ring();
        break;
      }
    }
    return true;
  }

  async #suspend(ids: readonly string[], mayBeRefused: boolean): Promise<"asleep" | "overtaken" | "refused"> {
    const actions = ids.map((awaited) => ({
      kind: "promise.register_callback",
      data: { awaiter: this.id, awaited },
    }));
    try {
      return (await this.#ask("task.suspend", { actions })) === undefined ? "overtaken" : "asleep";
    } catch (error) {
      if (mayBeRefused && isRefusal(error)) return "refused";
      throw error;
    }
  }

  /** The promise that wakes the job up which sleeps since the lease of this version. */
  #bell(version: number): string {
    return leaseWakeupId(this.id, version);
  }

  /** Ends the job. @throws {LeaseLost} */
  async fulfill(state: "resolved" | "rejected", value: unknown): Promise<void> {
    const data = { id: this.id, state, value: encodeValue(value) };
    await this.#ask("task.fulfill", { action: { kind: "promise.settle", data } });
  }

  /** What a request under the lease is answered with; undefined for a suspension that something has overtaken. */
  async #ask(kind: string, request: object): Promise<unknown> {
    const { status, data } = await this.#send(kind, { id: this.id, version: this.version, ...request }, this.id);
    if (status === 300) return undefined;
    if (status === 200) return data ?? {};
    throw new LeaseLost(`the server answered ${status} to ${kind}`, { cause: { status } });
  }
}

function isRefusal(error: unknown): boolean {
  const { cause } = error as { cause?: { status?: unknown } };
  return REFUSALS.some((status) => cause?.status === status);
}
