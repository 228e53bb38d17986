/** When a job may begin that has a position in an order: see `order.ts`. */
import type { Lease } from "../../core/engine/index.ts";
import { MAX_CREATION_DELAY_MS, startsIn } from "../../core/jobs/index.ts";
import {
  begunId,
  chainLink,
  cleanUpId,
  cleanUpTimerId,
  decodeValue,
  ORDER_TAG,
  type PromiseRecord,
  positionTimerId,
} from "../../core/resonate/index.ts";

/** How long after a job's cancellation its clean-up may begin. Later jobs wait for no clean-up that begins later. */
const MAX_CLEAN_UP_DELAY_MS = 600_000;

/** How many missing positions in a row end the search backwards: positions of jobs that ended long ago are removed. */
const MAX_MISSING_POSITIONS = 32;

/** How many jobs of the order run at once, and how long the clean-up of each may take. */
interface OrderTerms {
  limit: number;
  cleanupTimeMs: number;
}

/** A start before a job's own, with its position and its place there. */
interface EarlierStart {
  job: string;
  position: PromiseRecord;
  place: string;
}

/**
 * When a job may begin: `now`, which is also recorded as its mark; when one of the returned promises has settled; or never
 * (`late`), as it was created so long after its position that later jobs did not wait for it. `now`: milliseconds since the epoch.
 *
 * @throws {LeaseLost}
 */
export async function turnOf(
  { id, tags, createdAt }: PromiseRecord,
  terms: OrderTerms,
  lease: Lease,
  now: number,
): Promise<"now" | "late" | string[]> {
  const link = chainLink(tags[ORDER_TAG] ?? "");
  if (!link || (await lease.get(begunId(id)))) return "now";
  const own = await lease.get(link.chain + link.n);
  if (own && createdAt > own.createdAt + MAX_CREATION_DELAY_MS) return "late";
  const ahead = new JobsAhead(id, terms, lease);
  for await (const start of startsBefore(id, link, own, lease)) {
    const isLast = await ahead.addStart(start, now);
    if (isLast || ahead.isFull) break;
  }
  if (ahead.isFull) return ahead.awaited;
  await lease.create(begunId(id), { beside: ahead.running }, "resolved");
  return "now";
}

/** The jobs and clean-ups that are at work or wait before a job. */
class JobsAhead {
  /** The job that waits. */
  readonly #id: string;
  readonly #terms: OrderTerms;
  readonly #lease: Lease;
  readonly #running = new Set<string>();
  readonly #timers = new Set<string>();

  constructor(id: string, terms: OrderTerms, lease: Lease) {
    this.#id = id;
    this.#terms = terms;
    this.#lease = lease;
  }

  /** Whether the job has to wait. */
  get isFull(): boolean {
    return this.#running.size >= this.#terms.limit;
  }

  /** The promises of jobs and clean-ups. */
  get running(): string[] {
    return [...this.#running];
  }

  /** The promises of which the first that settles may give the job its turn. */
  get awaited(): string[] {
    return [...this.#running, ...this.#timers];
  }

  /** Adds the job of an earlier start. Resolves with whether no start before it matters: its mark lists those that do. */
  async addStart({ job, position, place }: EarlierStart, now: number): Promise<boolean> {
    const until = position.createdAt + MAX_CREATION_DELAY_MS;
    const promise = await this.#lease.get(job);
    if (!promise && now < until) {
      const due = Math.min(position.createdAt + nextCheck(now - position.createdAt), until);
      this.#running.add((await this.#lease.create(positionTimerId(this.#id, place, due), undefined, { due })).id);
    }
    if (promise?.tags[ORDER_TAG] !== position.id || promise.createdAt > until) return false;
    const mark = await this.#lease.get(begunId(job));
    if (!mark) {
      await this.#add(promise);
      return false;
    }
    await this.#addBegun(promise);
    const { beside } = decodeValue(mark.param) as { beside: string[] };
    for (const each of beside) if (!this.isFull) await this.#addBegun(await this.#lease.get(each));
    return true;
  }

  /** Adds a job that has begun. A cancelled one is at work until its clean-up ends. */
  async #addBegun(job: PromiseRecord | undefined): Promise<void> {
    await this.#add(job?.state === "rejected_canceled" ? await this.#lease.get(cleanUpId(job.id)) : job);
  }

  async #add(promise: PromiseRecord | undefined): Promise<void> {
    if (promise?.state !== "pending") return;
    if (promise.id === cleanUpId(promise.tags["resonate:parent"] ?? "")) {
      // One that no worker can do, as the code is gone, stays pending for a day. The server's clock decides.
      const due = promise.createdAt + this.#terms.cleanupTimeMs + MAX_CLEAN_UP_DELAY_MS;
      const timer = await this.#lease.create(cleanUpTimerId(this.#id, due), undefined, { due });
      if (timer.state !== "pending") return;
      this.#timers.add(timer.id);
    }
    this.#running.add(promise.id);
  }
}

/** How long after its position a missing job is looked for again: 1 s, 2 s, 4 s and so on, as it is about to be created. */
const nextCheck = (waitedMs: number) => 1_000 * 2 ** Math.ceil(Math.log2(Math.max(waitedMs, 0) / 1_000 + 1));

/** The starts before a job's own, newest first. */
async function* startsBefore(
  id: string,
  { chain, n }: { chain: string; n: number },
  own: PromiseRecord | undefined,
  lease: Lease,
): AsyncGenerator<EarlierStart> {
  for (let m = n, missing = 0; m > 0 && missing < MAX_MISSING_POSITIONS; m--) {
    const position = m === n ? own : await lease.get(chain + m);
    missing = position ? 0 : missing + 1;
    if (!position) continue;
    const jobs = startsIn(position).map(({ job }) => job);
    const end = m === n ? jobs.indexOf(id) : jobs.length;
    for (let i = end - 1; i >= 0; i--) yield { job: jobs[i] as string, position, place: `${m}.${i}` };
  }
}
