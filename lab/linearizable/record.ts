/** Records histories: the requests of several concurrent clients, their answers, and the order of both. */
import { Random } from "../../test/support/random.ts";
import { Operations } from "./operations.ts";
import type { Subject } from "./subject.ts";

export interface Plan {
  histories: number;
  clients: number;
  /** The number of requests of each client of a history. */
  requests: number;
  seed: number;
  /** Whether the clock moves only while no request is under way, so that the time of each request is known. */
  isExact: boolean;
}

/** A request as the checker reads it. */
interface Entry {
  history: number;
  client: number;
  kind: string;
  data: object;
  /** Positions in the order of all requests sent and answers received. A lost request returns when the server has ended. */
  call: number;
  return: number;
  /** Bounds of the server's clock while the request was under way, in milliseconds since the epoch. */
  from: number;
  until: number;
  /** Absent if the server was killed before it answered. The request may or may not have taken effect. */
  answer?: { status: number; data: unknown };
}

/** How many histories are recorded side by side. The server is killed once in each such batch. */
const BATCH = 25;
/** The longest pause between two requests of a client, in milliseconds. */
const PAUSE = 40;
/** The steps by which the clock moves, in milliseconds. */
const MOVES = [1, 5, 20, 20, 60, 200] as const;

const pause = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));

/** Records the histories, one batch after another, and passes each entry to `write`. */
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
  /** Pending while nothing may be sent, because the server restarts or the clock of an exact plan moves. */
  #gate: Promise<void> = Promise.resolve();
  /** Resolves when the killed server has ended. */
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
      // Unique among all runs on the same server.
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
    for (let gate: Promise<void> | undefined; gate !== this.#gate;) {
      gate = this.#gate;
      await gate;
    }
  }

  /** Runs `work`, and lets nothing be sent in the meantime. */
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

  /** Kills the server at a random point, while requests are under way, and starts it again. */
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

/** The answer without `preload`, which the model does not contain. */
function withoutPreload(data: unknown): unknown {
  if (typeof data !== "object" || data === null) return undefined;
  const { preload: _, ...others } = data as { preload?: unknown };
  return others;
}
