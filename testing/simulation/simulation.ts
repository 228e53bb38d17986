/**
 * A Resonate server in this process: the embedded server's state machine, without its disk and clock. It is fast enough to
 * run a durable function thousands of times a second.
 */
import { type Clock, type LeasedTask, machineClock } from "../../core/engine/index.ts";
import { encodeValue, lineage, type PromiseRecord, rootOf } from "../../core/resonate/index.ts";
import { MemoryState } from "../../server/engine/memory-state.ts";
import { type Change, type Operation, promiseRecord } from "../../server/engine/records.ts";
import { carryOut, handleDue } from "../../server/engine/state-machine.ts";

const REQUEST_HEAD = { corrId: "", version: "" };
const WORKERS_ADDRESS = "poll://any@simulated";

export class Simulation {
  readonly #state = new MemoryState();
  readonly #now: () => number;
  readonly onSettled = new Set<(promise: PromiseRecord) => void>();
  /** Requests answered so far, by kind. */
  readonly requests = new Map<string, number>();
  /** The total length of the requests and their answers, in characters of JSON. */
  characters = 0;

  constructor({ now }: Pick<Clock, "now"> = machineClock) {
    this.#now = now;
  }

  /** Answers a request as of now. */
  send = async (kind: string, data: object): Promise<{ status: number; data: unknown }> => {
    this.requests.set(kind, (this.requests.get(kind) ?? 0) + 1);
    // The two sides share no objects, as over the network.
    const request = JSON.stringify(data);
    const { response } = this.#apply({ kind, head: REQUEST_HEAD, data: JSON.parse(request) } as Operation);
    const answer = JSON.stringify(response.data ?? {});
    this.characters += request.length + answer.length;
    return { status: response.head.status, data: JSON.parse(answer) };
  };

  /** Creates a job's promise, with a task that a worker can acquire. */
  async start(id: string, param: unknown, timeoutAt: number): Promise<void> {
    const tags = { ...lineage(id), "resonate:target": WORKERS_ADDRESS };
    await this.send("promise.create", { id, timeoutAt, param: encodeValue(param), tags });
  }

  /** Acquires a job's task; undefined while the task is not pending. */
  async acquire(id: string): Promise<LeasedTask | undefined> {
    this.tick();
    const task = this.#state.tasks.get(id);
    if (task?.state !== "pending") return undefined;
    const answer = await this.send("task.acquire", { id, version: task.version, pid: "p", ttl: 2 ** 40 });
    return answer.status === 200 ? (answer.data as LeasedTask) : undefined;
  }

  /** Ends the lease on a job's task, as the death of its worker does. */
  kill(id: string): void {
    const task = this.#state.tasks.get(id);
    if (task?.state !== "acquired") return;
    const data = { id, version: task.version };
    this.#apply({ kind: "task.release", head: REQUEST_HEAD, data } as Operation);
  }

  get(id: string): PromiseRecord | undefined {
    const { response } = this.#apply({ kind: "promise.get", head: REQUEST_HEAD, data: { id } } as Operation);
    return response.head.status === 200 ? (response.data as { promise: PromiseRecord }).promise : undefined;
  }

  /** Settles a promise from outside of the job. */
  settle(id: string, state: "resolved" | "rejected" | "rejected_canceled", value?: unknown): void {
    this.#apply({
      kind: "promise.settle",
      head: REQUEST_HEAD,
      data: { id, state, value: encodeValue(value) },
    } as Operation);
  }

  /** Removes a job's promises. */
  forget(job: string): void {
    for (const records of [this.#state.promises, this.#state.tasks])
      for (const id of records.keys()) if (rootOf(id) === job) records.delete(id);
  }

  promises(): string[] {
    return [...this.#state.promises.keys()];
  }

  /** When the first pending promise times out, in milliseconds since the epoch. */
  nextTimeout(): number | undefined {
    const pending = [...this.#state.promises.values()].filter(({ state }) => state === "pending");
    return pending.length > 0 ? Math.min(...pending.map(({ timeoutAt }) => timeoutAt)) : undefined;
  }

  /** Times out the promises that are due. */
  tick(): void {
    const now = this.#now();
    this.#notify(handleDue(this.#state, now, this.#state.due(now)));
  }

  #apply(request: Operation) {
    const outcome = carryOut(this.#state, this.#now(), request);
    this.#notify(outcome.changes);
    return outcome;
  }

  #notify(changes: readonly Change[]): void {
    for (const change of changes) {
      if (change.kind === "promise" && change.promise.state !== "pending") {
        for (const listener of this.onSettled) listener(promiseRecord(change.promise));
      }
    }
  }
}
