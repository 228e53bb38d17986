import { ownerOf } from "../../../core/jobs/index.ts";
import {
  decodeValue,
  type LeaseRef,
  localId,
  type PromiseRecord,
  rootOf,
  Slots,
} from "../../../core/resonate/index.ts";
import type { PollConnection } from "../../engine/poll-connections.ts";
import type { Resonate } from "../../engine/resonate.ts";
import type { RunnerReports } from "./runner-reports.ts";
import { Runner } from "./runner.ts";

/** How many tasks of each function run at once, so that a slow function holds up no other. The others wait, callers in turn. */
export const MAX_TASKS_PER_FUNCTION = 50;

/** How many functions have their own slots, since anyone with a token can write any number of names. The others share slots. */
const MAX_FUNCTIONS_WITH_SLOTS = 100;

/** The number of runners: all jobs of a runner share its memory, and each runner is charged for while it is awake. */
const RUNNER_COUNT = 8;

/** The head of requests that the pool itself sends. */
const REQUEST_HEAD = { corrId: "", version: "" };

/** A namespace of Durable Objects, with one object per name. */
export interface RunnerNamespace {
  idFromName(name: string): object;
  get(id: object, options?: object): { fetch(url: string, init: RequestInit): Promise<Response> };
}

interface RunnerPoolOptions {
  resonate: Resonate;
  namespace: RunnerNamespace;
  /** The group whose tasks runners execute. */
  group: string;
  /** The deployment's namespace, the prefix of its promise ids. */
  prefix: string;
  durable: () => Promise<void>;
  /** Undefined in a deployment without operators. */
  reports: RunnerReports | undefined;
}

interface Dispatch {
  task: LeaseRef;
  connection: PollConnection;
}

/**
 * Hands tasks that find no connected worker to runners, and wakes them. To the server it is a connection of the group, which
 * exists only while the group has no worker.
 */
export class RunnerPool {
  readonly #resonate: Resonate;
  readonly #durable: () => Promise<void>;
  readonly #reports: RunnerReports | undefined;
  readonly #runners: readonly Runner[];
  readonly #group: string;
  #connection: PollConnection | undefined;
  readonly #slots = new Map<string, Slots>();
  /** The tasks that wait for a slot, each as it was last dispatched: the server may dispatch them again in the meantime. */
  readonly #waiting = new Map<string, Dispatch>();
  readonly #prefix: string;

  constructor({ resonate, namespace, group, prefix, durable, reports }: RunnerPoolOptions) {
    this.#resonate = resonate;
    this.#durable = durable;
    this.#group = group;
    this.#prefix = prefix;
    this.#reports = reports;
    this.#runners = Array.from({ length: RUNNER_COUNT }, (_, n) => {
      const stub = () => namespace.get(namespace.idFromName(`runner-${n + 1}`));
      return new Runner(resonate, stub, durable);
    });
  }

  serve(): void {
    if (this.#connection) return;
    const connection = this.#resonate.connect(this.#group, ":runner", { isRunner: true });
    if (!connection) return;
    this.#connection = connection;
    queueMicrotask(() => void this.#receive(connection)); // after the current commit
  }

  /** Leaves the tasks that are not yet running to a worker that has connected, or to the end of a pause. */
  disconnect(): void {
    const connection = this.#connection;
    this.#connection = undefined;
    if (connection) this.#resonate.disconnect(connection);
  }

  async #receive(connection: PollConnection): Promise<void> {
    for (;;) {
      const messages = await this.#resonate.next(connection);
      if (!messages) return;
      await this.#durable();
      for (const message of messages) {
        const { kind, data } = JSON.parse(message);
        if (kind === "execute") void this.#enqueue({ task: data.task, connection });
      }
    }
  }

  /** Runs a task when a slot is free and it is its caller's turn. */
  async #enqueue(dispatch: Dispatch): Promise<void> {
    const { task } = dispatch;
    const isWaiting = this.#waiting.has(task.id);
    this.#waiting.set(task.id, dispatch);
    if (isWaiting) return;
    this.#reports?.addWaiting(1);
    const promise = await this.#promiseOf(task);
    const name = localId(task.id, this.#prefix);
    const owner = promise ? ownerOf(name, promise) : "";
    this.#slotsOf(promise).add(owner, async () => {
      const last = this.#waiting.get(task.id) ?? dispatch;
      this.#waiting.delete(task.id);
      this.#reports?.addWaiting(-1);
      if (!last.connection.isClosed) await this.#run(last);
    });
  }

  /** Runs a task. All tasks of a job go to the same runner, which may still have the job in memory. */
  async #run({ task, connection }: Dispatch): Promise<void> {
    this.#reports?.addRunning(1);
    try {
      // The promise shows the runner whether it has the code, before it acquires the task, which costs rows.
      const promise = await this.#promiseOf(task);
      if (!promise) return;
      const { isKnown, report } = await this.#runnerOf(task.id).run(task, promise);
      if (report) this.#reports?.add(report);
      if (!isKnown) this.#resonate.decline(task.id, connection);
    } catch (error) {
      // The task is dispatched again after its interval, or when the runner's lease expires.
      console.warn(JSON.stringify({ level: "warn", msg: "task not run", task: task.id, reason: String(error) }));
    } finally {
      this.#reports?.addRunning(-1);
    }
  }

  #slotsOf(promise: PromiseRecord | undefined): Slots {
    const { func } = (promise && (decodeValue(promise.param) as { func?: unknown } | undefined)) ?? {};
    // The function names of encrypted jobs are unknown, so those jobs share slots.
    const isNamed = typeof func === "string" && (this.#slots.has(func) || this.#slots.size < MAX_FUNCTIONS_WITH_SLOTS);
    const name = isNamed ? func : "";
    const slots = this.#slots.get(name) ?? new Slots(MAX_TASKS_PER_FUNCTION);
    this.#slots.set(name, slots);
    return slots;
  }

  async #promiseOf({ id }: LeaseRef): Promise<PromiseRecord | undefined> {
    const { head, data } = await this.#resonate.submit({ kind: "promise.get", head: REQUEST_HEAD, data: { id } });
    return head.status === 200 ? (data as { promise: PromiseRecord }).promise : undefined;
  }

  #runnerOf(task: string): Runner {
    let sum = 0;
    for (const letter of rootOf(task)) sum = (Math.imul(sum, 31) + letter.charCodeAt(0)) >>> 0;
    return this.#runners[sum % RUNNER_COUNT] as Runner;
  }
}
