import { ownerOf } from "../../core/jobs/durable-promise.ts";
import { decodeValue } from "../../core/store/codec.ts";
import { localId, rootOf } from "../../core/store/ids.ts";
import { Slots } from "../../core/store/pacing/slots.ts";
import type { LeaseRef, PromiseRecord } from "../../core/store/protocol.ts";
import type { Resonate } from "../resonate.ts";
import type { PollConnection } from "../wire/poll-connections.ts";
import { Runner } from "./runner.ts";

/** How many tasks of each kind run at once, so that one kind that waits holds up no other. The rest waits, each caller's in turn. */
const MOST = 50;

/** How many kinds are told apart: their names are what anybody wrote who has a token. */
const KINDS = 100;

/** How many runners there are: what one of them has read serves all its jobs, and each is charged for while it is awake. */
const COUNT = 8;

/** Of a request that comes from no client. */
const HEAD = { corrId: "", version: "" };

/** The deployment's runners, as the platform gives them: each name is one object. */
export interface RunnerNamespace {
  idFromName(name: string): object;
  get(id: object, options?: object): { fetch(url: string, init: RequestInit): Promise<Response> };
}

/**
 * Hands tasks for which no worker is connected to runners, which it wakes. Towards the server it is a connection as any
 * other, that is there only while its group has no worker of its own.
 */
export class Runners {
  readonly #resonate: Resonate;
  readonly #durable: () => Promise<void>;
  readonly #runners: readonly Runner[];
  readonly #connections = new Map<string, PollConnection>();
  readonly #places = new Map<string, Slots>();
  /** What waits for a place: it is dispatched again meanwhile. */
  readonly #waiting = new Set<string>();
  readonly #prefix: string;

  /** `prefix`: what the ids of the deployment's promises begin with. */
  constructor(resonate: Resonate, namespace: RunnerNamespace, prefix: string, durable: () => Promise<void>) {
    this.#resonate = resonate;
    this.#durable = durable;
    this.#prefix = prefix;
    this.#runners = Array.from({ length: COUNT }, (_, n) => {
      const stub = () => namespace.get(namespace.idFromName(`runner-${n + 1}`));
      return new Runner(resonate, stub, durable);
    });
  }

  /** Takes what waits for a group. */
  take(group: string): void {
    if (this.#connections.has(group)) return;
    const connection = this.#resonate.connect(group, ":runner", { isRunner: true });
    if (!connection) return;
    this.#connections.set(group, connection);
    queueMicrotask(() => void this.#serve(connection)); // after what is being committed
  }

  /** A worker of the group has connected: what is not running yet is left to it. */
  leave(group: string): void {
    const connection = this.#connections.get(group);
    this.#connections.delete(group);
    if (connection) this.#resonate.disconnect(connection);
  }

  /** What is not running yet is left to whoever connects. */
  leaveAll(): void {
    for (const group of [...this.#connections.keys()]) this.leave(group);
  }

  async #serve(connection: PollConnection): Promise<void> {
    for (;;) {
      const messages = await this.#resonate.next(connection);
      if (!messages) return;
      await this.#durable();
      for (const message of messages) {
        const { kind, data } = JSON.parse(message);
        if (kind === "execute") void this.#wait(data.task, connection);
      }
    }
  }

  /** Has a task run when it is its caller's turn. */
  async #wait(task: LeaseRef, connection: PollConnection): Promise<void> {
    if (this.#waiting.has(task.id)) return;
    this.#waiting.add(task.id);
    const promise = await this.#promiseOf(task);
    const name = localId(task.id, this.#prefix);
    const owner = promise ? ownerOf(name, promise) : "";
    this.#placesOf(promise).add(owner, async () => {
      this.#waiting.delete(task.id);
      if (!connection.closed) await this.#run(task, connection);
    });
  }

  /** One task, by the runner of its job: what that remembers of the job serves it again. */
  async #run(task: LeaseRef, connection: PollConnection): Promise<void> {
    try {
      // By its promise the runner sees whether it has the code: a task that it claims costs rows.
      const promise = await this.#promiseOf(task);
      if (!promise) return;
      const isKnown = await this.#runnerOf(task.id).run(task, promise);
      if (!isKnown) this.#resonate.leaveAlone(task.id, connection);
    } catch (error) {
      // The task is offered again: after a while, or when the lease that its runner had has lapsed.
      console.warn(JSON.stringify({ level: "warn", msg: "task not run", task: task.id, reason: String(error) }));
    }
  }

  #placesOf(promise: PromiseRecord | undefined): Slots {
    const { func } = (promise && (decodeValue(promise.param) as { func?: unknown } | undefined)) ?? {};
    // What is encrypted counts as one kind.
    const isTold = typeof func === "string" && (this.#places.has(func) || this.#places.size < KINDS);
    const kind = isTold ? func : "";
    const places = this.#places.get(kind) ?? new Slots(MOST);
    this.#places.set(kind, places);
    return places;
  }

  async #promiseOf({ id }: LeaseRef): Promise<PromiseRecord | undefined> {
    const { head, data } = await this.#resonate.submit({ kind: "promise.get", head: HEAD, data: { id } });
    return head.status === 200 ? (data as { promise: PromiseRecord }).promise : undefined;
  }

  #runnerOf(task: string): Runner {
    let sum = 0;
    for (const letter of rootOf(task)) sum = (Math.imul(sum, 31) + letter.charCodeAt(0)) >>> 0;
    return this.#runners[sum % COUNT] as Runner;
  }
}
