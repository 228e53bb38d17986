/**
 * A Resonate server in this process: the state machine of the embedded one, without disk and clock. It is fast enough to
 * run a durable function thousands of times a second.
 */
import type { PromiseRecord, Request } from "@resonatehq/sdk";
import { type Clock, machineClock } from "../core/engine/clock.ts";
import type { HeldTask } from "../core/engine/lease.ts";
import { encodeValue, lineage } from "../core/store/codec.ts";
import { createStateMachine } from "../server/engine/state-machine.ts";

const HEAD = { corrId: "", version: "" };
const GROUP = "poll://any@simulated";

export class Simulation {
  readonly #machine = createStateMachine();
  readonly #now: () => number;
  /** Called with each promise that settles. */
  readonly onSettled = new Set<(promise: PromiseRecord) => void>();
  /** Requests answered so far, by kind. */
  readonly requests = new Map<string, number>();

  constructor({ now }: Pick<Clock, "now"> = machineClock) {
    this.#now = now;
  }

  /** Answers a request as of now. */
  send = async (kind: string, data: object): Promise<{ status: number; data: unknown }> => {
    this.requests.set(kind, (this.requests.get(kind) ?? 0) + 1);
    // As over the network, the two sides share no objects.
    const request = { kind, head: HEAD, data: JSON.parse(JSON.stringify(data)) } as Request;
    if (request.kind === "task.fence") request.data.action.head = HEAD;
    const { response } = this.#apply(request);
    return { status: response.head.status, data: JSON.parse(JSON.stringify(response.data ?? {})) };
  };

  /** Creates a job's promise, with a task to be acquired. */
  async start(id: string, param: unknown, timeoutAt: number, tags: Record<string, string> = {}): Promise<void> {
    const all = { ...lineage(id, id), "resonate:target": GROUP, ...tags };
    await this.send("promise.create", { id, timeoutAt, param: encodeValue(param), tags: all });
  }

  /** Acquires a job's task; undefined while the task is not pending. */
  async acquire(id: string): Promise<HeldTask | undefined> {
    this.tick();
    const task = this.#machine.tasks.get(id);
    if (task?.state !== "pending") return undefined;
    const answer = await this.send("task.acquire", { id, version: task.version, pid: "p", ttl: 2 ** 40 });
    return answer.status === 200 ? (answer.data as HeldTask) : undefined;
  }

  /** Ends the lease on a job's task, as the death of its worker does. */
  kill(id: string): void {
    const task = this.#machine.tasks.get(id);
    if (task?.state !== "acquired") return;
    const data = { id, version: task.version };
    this.#apply({ kind: "task.release", head: HEAD, data } as Request);
  }

  get(id: string): PromiseRecord | undefined {
    const { response } = this.#apply({ kind: "promise.get", head: HEAD, data: { id } } as Request);
    return response.head.status === 200 ? (response.data as { promise: PromiseRecord }).promise : undefined;
  }

  /** Settles a promise from outside of the job. */
  settle(id: string, state: "resolved" | "rejected" | "rejected_canceled", value?: unknown): void {
    this.#apply({ kind: "promise.settle", head: HEAD, data: { id, state, value: encodeValue(value) } } as Request);
  }

  /** The ids of all promises. */
  promises(): string[] {
    return [...this.#machine.promises.keys()];
  }

  /** When the first pending promise times out, in milliseconds since the epoch. */
  nextTimeout(): number | undefined {
    const open = [...this.#machine.promises.values()].filter(({ state }) => state === "pending");
    return open.length > 0 ? Math.min(...open.map(({ timeoutAt }) => timeoutAt)) : undefined;
  }

  /** Times out what is due. */
  tick(): void {
    const now = this.#now();
    for (const { id, state, timeoutAt } of [...this.#machine.promises.values()]) {
      if (state === "pending" && timeoutAt <= now) this.get(id);
    }
    this.#apply({ kind: "debug.tick", head: HEAD, data: { time: now } } as Request);
  }

  #apply(request: Request) {
    const outcome = this.#machine.apply(this.#now(), request);
    for (const change of outcome.changes) {
      if (change.kind === "promise.set" && change.promise.state !== "pending") {
        for (const listener of this.onSettled) listener(change.promise);
      }
    }
    return outcome;
  }
}
