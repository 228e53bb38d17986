/** Random requests about a few promises. Most of them fit the state that earlier answers have shown. */
import type { Random } from "../../test/support/random.ts";

export interface Operation {
  kind: string;
  data: object;
}

interface Task {
  id: string;
  state: string;
  version: number;
  pid?: string | null;
}

const HEAD = { corrId: "lab", version: "2026-04-01" };
/** The number of promises of each origin besides its root. */
const CHILDREN = 3;
/** Milliseconds until a promise times out: in the past, soon, and after the end of the history. */
const TIMEOUTS = [-1_000, 20, 60, 150, 400, ...Array<number>(7).fill(3_600_000)];
const LEASES = [5, 20, 60, 200, 60_000, 60_000] as const;
const SETTLED = ["resolved", "rejected", "rejected_canceled"] as const;

/** The kinds of a client's first request. */
const FIRST = ["task.create", "promise.create", "promise.create"] as const;

/** Weights of requests that ignore the known state. */
const ANYTHING = {
  "promise.create": 14,
  "promise.get": 8,
  "promise.settle": 12,
  "promise.register_callback": 8,
  "promise.register_listener": 2,
  "task.create": 10,
  "task.get": 12,
  "task.acquire": 6,
  "task.release": 2,
  "task.suspend": 4,
  "task.fulfill": 2,
  "task.fence": 2,
  "task.heartbeat": 2,
  "task.halt": 4,
  "task.continue": 2,
} as const;

type Kind = keyof typeof ANYTHING;

/** Weights of requests by the known state of a task. */
const BY_STATE: Readonly<Record<string, Readonly<Record<string, number>>>> = {
  pending: { "task.acquire": 20, "task.create": 3, "task.get": 3, "task.halt": 1 },
  acquired: {
    "task.suspend": 20,
    "task.fence": 8,
    "task.fulfill": 4,
    "task.heartbeat": 4,
    "task.release": 4,
    "task.get": 4,
    "promise.register_callback": 4,
    "task.halt": 1,
  },
  suspended: { "promise.settle": 16, "task.get": 8, "promise.register_callback": 3, "task.halt": 2 },
  halted: { "task.continue": 10, "task.get": 3, "promise.settle": 4 },
};

/** The state of a task after a successful request. */
const BECOMES: Readonly<Record<string, string>> = {
  "task.release": "pending",
  "task.suspend": "suspended",
  "task.fulfill": "fulfilled",
  "task.halt": "halted",
  "task.continue": "pending",
};

/** What a request is about. */
interface Subjects {
  /** The server's clock, in milliseconds since the epoch. */
  now: number;
  origin: string;
  /** The promises of the origin. */
  ids: readonly string[];
  /** The promise whose task makes or takes the request. */
  worker: string;
  /** Another promise of the origin. */
  other: string;
  /** The client's process, and the one that is known to hold the worker's task. */
  pid: string;
  holder: string;
  value: object;
  lease: { id: string; version: number };
}

/** A request whose kind and subjects are chosen, and whose other parameters are chosen here. */
class Draft {
  readonly #random: Random;
  readonly #subjects: Subjects;

  constructor(random: Random, subjects: Subjects) {
    this.#random = random;
    this.#subjects = subjects;
  }

  dataOf(kind: Kind): object {
    const { worker, other, pid, holder, lease } = this.#subjects;
    switch (kind) {
      case "promise.create":
        return this.#creation(this.#workerOrOther(60));
      case "promise.get":
      case "task.get":
      case "task.halt":
      case "task.continue":
        return { id: this.#workerOrOther(70) };
      case "promise.settle":
        return this.#settlement(this.#workerOrOther(20));
      case "promise.register_callback":
        return { awaited: other, awaiter: worker };
      case "promise.register_listener":
        return { awaited: other, address: "poll://any@linearizable" };
      case "task.create":
        return { pid, ttl: this.#ttl(), action: action("promise.create", this.#creation(worker, true)) };
      case "task.acquire":
        return { ...lease, pid, ttl: this.#ttl() };
      case "task.release":
        return lease;
      case "task.suspend":
        return { ...lease, actions: this.#callbacks() };
      case "task.fulfill":
        return { ...lease, action: action("promise.settle", this.#settlement(worker)) };
      case "task.fence":
        return { ...lease, action: this.#fencedAction() };
      case "task.heartbeat":
        return { pid: holder, tasks: [lease] };
    }
  }

  #workerOrOther(workerPercent: number): string {
    const { worker, other } = this.#subjects;
    return this.#random.chance(workerPercent) ? worker : other;
  }

  #ttl(): number {
    return this.#random.pick(LEASES);
  }

  #isTarget(id: string): boolean {
    return id === this.#subjects.origin || this.#random.chance(40);
  }

  #creation(id: string, isTarget = this.#isTarget(id)): object {
    const { now, origin, value } = this.#subjects;
    return {
      id,
      timeoutAt: now + this.#random.pick(TIMEOUTS),
      param: value,
      tags: {
        "resonate:scope": "global",
        "resonate:external": "true",
        "resonate:branch": origin,
        ...(isTarget && { "resonate:target": "poll://any@linearizable" }),
        ...(!isTarget && this.#random.chance(30) && { "resonate:timer": "true" }),
      },
    };
  }

  #settlement(id: string): object {
    return { id, state: this.#random.pick(SETTLED), value: this.#subjects.value };
  }

  #callbacks(): object[] {
    const { ids, worker, other } = this.#subjects;
    const awaited = new Set([other, ...(this.#random.chance(40) ? [this.#random.pick(ids)] : [])]);
    awaited.delete(worker);
    return [...awaited].map((id) => action("promise.register_callback", { awaited: id, awaiter: worker }));
  }

  #fencedAction(): object {
    const { other } = this.#subjects;
    return this.#random.chance(60)
      ? action("promise.create", this.#creation(other))
      : action("promise.settle", this.#settlement(other));
  }
}

/** The requests of one history. Its clients share their knowledge of the tasks. */
export class Operations {
  readonly #origins: readonly string[];
  readonly #tasks = new Map<string, Task>();
  readonly #promises = new Set<string>();

  constructor(origins: readonly string[]) {
    this.#origins = origins;
  }

  /** Returns the next request of a client; `now` is the server's clock, in milliseconds since the epoch. */
  next(random: Random, client: number, isFirst: boolean, now: number): Operation {
    const origin = random.pick(this.#origins);
    const ids = [origin, ...Array.from({ length: CHILDREN }, (_, n) => `${origin}:${n}`)];
    const worker = random.chance(60) ? origin : random.pick(ids);
    const others = ids.filter((id) => id !== worker);
    const known = others.filter((id) => this.#promises.has(id));
    const other = random.pick(known.length > 0 && random.chance(80) ? known : others);
    const kind = isFirst ? random.pick(FIRST) : this.#kind(random, worker);
    const pid = `p${client}`;
    const value = { data: `v${random.int(0, 999)}` };
    const lease = { id: worker, version: this.#version(random, worker) };
    const holder = this.#tasks.get(worker)?.pid ?? pid;
    const draft = new Draft(random, { now, origin, ids, worker, other, pid, holder, value, lease });
    return { kind, data: draft.dataOf(kind) };
  }

  /** Learns from an answer. */
  answered({ kind, data }: Operation, status: number, answer: unknown): void {
    const { id } = data as { id?: string };
    const known = this.#tasks.get(id ?? "");
    const becomes = BECOMES[kind];
    if (status === 200 && known && becomes) known.state = becomes;
    // The known state is out of date.
    if (status === 409 && known) known.state = "";
    if (status >= 300) return;
    const { task, promise } = answer as { task?: Task; promise?: { id: string } };
    if (task) this.#tasks.set(task.id, { ...task });
    if (promise) this.#promises.add(promise.id);
  }

  /** Chooses a kind of request, mostly one that fits the known state. */
  #kind(random: Random, id: string): Kind {
    const { state = "none" } = this.#tasks.get(id) ?? {};
    if (state === "" && random.chance(60)) return "task.get";
    const fitting = BY_STATE[state];
    return random.weighted(fitting && random.chance(65) ? fitting : ANYTHING) as Kind;
  }

  /** Chooses a version, mostly the known one of the task. */
  #version(random: Random, id: string): number {
    return random.chance(85) ? (this.#tasks.get(id)?.version ?? 0) : random.int(0, 3);
  }
}

const action = (kind: string, data: object) => ({ kind, head: HEAD, data });
