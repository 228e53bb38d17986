import { rootOf } from "../../../core/resonate/names.ts";
import type { LeaseRef, PromiseRecord } from "../../../core/resonate/protocol.ts";
import type { PollConnection } from "../connections.ts";
import type { Resonate } from "../resonate.ts";

/** How many tasks run at once; the others wait. */
const MOST = 50;

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
  readonly #namespace: RunnerNamespace;
  readonly #durable: () => Promise<void>;
  readonly #connections = new Map<string, PollConnection>();
  #running = 0;
  #hasRoom = Promise.withResolvers<void>();

  constructor(resonate: Resonate, namespace: RunnerNamespace, durable: () => Promise<void>) {
    this.#resonate = resonate;
    this.#namespace = namespace;
    this.#durable = durable;
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
        while (this.#running >= MOST) await this.#hasRoom.promise;
        const { kind, data } = JSON.parse(message);
        if (kind === "execute") void this.#run(data.task, connection);
      }
    }
  }

  /** One task, by the runner of its job: what that remembers of the job serves it again. */
  async #run(task: LeaseRef, connection: PollConnection): Promise<void> {
    this.#running += 1;
    try {
      // By its promise the runner sees whether it has the code: a task that it claims costs rows.
      const get = { kind: "promise.get" as const, head: HEAD, data: { id: task.id } };
      const { promise } = (await this.#resonate.submit(get)).data as { promise: PromiseRecord };
      const runner = this.#namespace.get(this.#namespace.idFromName(rootOf(task.id)));
      const response = await runner.fetch("https://runner/", {
        method: "POST",
        body: JSON.stringify({ task, promise }),
      });
      if (!response.ok) throw new Error(`the runner answered ${response.status}`);
      const { isKnown } = (await response.json()) as { isKnown: boolean };
      if (!isKnown) this.#resonate.leaveAlone(task.id, connection);
    } catch (error) {
      // The task is offered again: after a while, or when the lease that its runner had has lapsed.
      console.warn(JSON.stringify({ level: "warn", msg: "task not run", task: task.id, reason: String(error) }));
    } finally {
      this.#running -= 1;
      this.#hasRoom.resolve();
      this.#hasRoom = Promise.withResolvers();
    }
  }
}
