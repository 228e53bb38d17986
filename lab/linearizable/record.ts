/** Records histories: what each of several clients asked of a server at the same time, and what it was answered when. */
import { Random } from "../chaos/random.ts";
import { Operations } from "./operations.ts";
import type { Subject } from "./subject.ts";

export interface Plan {
  histories: number;
  clients: number;
  /** Of each client of a history. */
  requests: number;
  seed: number;
  /** The clock moves only while no request is under way, so that each happens at a time that is known. */
  isExact: boolean;
}

/** A request as the checker reads it. Orders are of all that was sent and received; times are the server's clock. */
interface Entry {
  history: number;
  client: number;
  kind: string;
  data: object;
  /** Its place in the order, and that of its answer: of a request that was lost, that of the server's end. */
  call: number;
  return: number;
  /** What the server's clock was not before when it was sent, and not after when it was answered. */
  from: number;
  until: number;
  /** Absent when the server was killed before it answered: what was asked may have happened. */
  answer?: { status: number; data: unknown };
}

/** How many histories are recorded side by side; in the middle of each such batch the server is killed. */
const BATCH = 25;
/** Milliseconds between two requests of a client, at most. */
const PAUSE = 40;
/** Milliseconds by which the clock is moved. */
const MOVES = [1, 5, 20, 20, 60, 200] as const;

const pause = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));

/** Records the histories one batch after the other; `write` is given each entry. */
export async function record(subject: Subject, plan: Plan, write: (entry: Entry) => void): Promise<void> {
  for (let first = 0; first < plan.histories; first += BATCH) {
    await new Batch(subject, plan, write).record(first, Math.min(first + BATCH, plan.histories));
  }
}

class Batch {
  readonly #subject: Subject;
  readonly #plan: Plan;
  readonly #write: (entry: Entry) => void;
  #order = 0;
  #underWay = 0;
  #answered = 0;
  #isOver = false;
  /** Resolves when the server is there; while it is not, and while the clock moves in an exact plan, nothing is sent. */
  #gate: Promise<void> = Promise.resolve();
  /** Resolves when the server that was killed has ended. */
  #ended: Promise<void> = Promise.resolve();

  constructor(subject: Subject, plan: Plan, write: (entry: Entry) => void) {
    this.#subject = subject;
    this.#plan = plan;
    this.#write = write;
  }

  async record(first: number, end: number): Promise<void> {
    const { seed, clients, requests } = this.#plan;
    const all: Promise<void>[] = [];
    for (let history = first; history < end; history++) {
      // Long enough that no other run on the same server has them.
      const name = `l${seed.toString(36)}x${Date.now().toString(36)}h${history}`;
      const operations = new Operations([`${name}a`, `${name}b`]);
      for (let client = 0; client < clients; client++) {
        const random = new Random(seed + history * 1_009 + client * 31);
        all.push(this.#client(history, client, operations, random));
      }
    }
    const others = new Random(seed + first);
    const disturbances = [this.#moveClock(others), this.#killOnce((end - first) * clients * requests, others)];
    await Promise.all(all);
    this.#isOver = true;
    await Promise.all(disturbances);
  }

  async #client(history: number, client: number, operations: Operations, random: Random): Promise<void> {
    for (let n = 0; n < this.#plan.requests; n++) {
      await pause(random.int(0, PAUSE));
      await this.#open();
      const operation = operations.next(random, client, n === 0, this.#subject.latest);
      const { kind, data } = operation;
      const entry = { history, client, kind, data, call: ++this.#order, from: this.#subject.earliest };
      this.#underWay += 1;
      const answer = await this.#subject.call(kind, data);
      this.#underWay -= 1;
      this.#answered += 1;
      if (!answer) await this.#ended;
      else operations.answered(operation, answer.status, answer.data);
      const told = answer && { answer: { status: answer.status, data: withoutPreload(answer.data) } };
      this.#write({ ...entry, return: ++this.#order, until: this.#subject.latest, ...told });
    }
  }

  /** Waits until requests may be sent. */
  async #open(): Promise<void> {
    for (let gate: Promise<void> | undefined; gate !== this.#gate; ) {
      gate = this.#gate;
      await gate;
    }
  }

  /** Nothing is sent while `work` runs. */
  async #shut(work: () => Promise<void>): Promise<void> {
    await this.#open();
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#gate = promise;
    try {
      await work();
    } finally {
      resolve();
    }
  }

  async #moveClock(random: Random): Promise<void> {
    const { move } = this.#subject;
    while (move && !this.#isOver) {
      await pause(random.int(5, PAUSE));
      const ms = random.pick(MOVES);
      if (!this.#plan.isExact) {
        await this.#open();
        await move(ms);
        continue;
      }
      await this.#shut(async () => {
        while (this.#underWay > 0) await pause(1);
        await move(ms);
      });
    }
  }

  /** Kills the server when a part of the requests has been answered, while others are under way. */
  async #killOnce(requests: number, random: Random): Promise<void> {
    const { kill } = this.#subject;
    if (!kill) return;
    const at = Math.floor((requests * random.int(20, 80)) / 100);
    while (this.#answered < at || this.#underWay === 0) {
      if (this.#isOver) return;
      await pause(1);
    }
    await this.#shut(async () => {
      this.#ended = kill();
      await this.#ended;
      while (this.#underWay > 0) await pause(1);
      await this.#subject.start();
    });
  }
}

/** What a promise's branch holds is no part of the model. */
function withoutPreload(data: unknown): unknown {
  if (typeof data !== "object" || data === null) return undefined;
  const { preload: _, ...others } = data as { preload?: unknown };
  return others;
}
