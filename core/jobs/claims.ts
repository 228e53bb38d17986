/**
 * Who still wants a shared job, so that one caller who cancels it does not take it from the others.
 *
 * Whoever creates the job's promise is named in it, and wants the job until there is a record that he gave it up.
 * Everybody else has a record that he started it, and makes a claim: a child `<promise>:c1`, `<promise>:c2`, …, without
 * gaps, pending for as long as its claimant wants the job. Creating the next one is atomic, which decides every race:
 * whoever gives the job up last takes the next place for nobody, and only then may cancel. A claim that comes later finds
 * that place, and so knows that the job is as good as cancelled; one that came before keeps the place from being taken.
 */
import type { ResonateClient } from "../store/client.ts";
import { childOf, decodeValue, encodeValue } from "../store/codec.ts";
import type { PromiseRecord } from "../store/protocol.ts";

/** A job that has had as many claims stays claimed for good, so that neither claiming nor giving up takes long. */
const MAX_CLAIMS = 16;

/**
 * How many of those one caller makes, starting and giving up by turns: nobody alone uses them up, and so keeps the
 * others from cancelling. What such a caller starts once more, it has no say in.
 */
const MAX_OWN_CLAIMS = 2;

/** The claimant of a job that is being cancelled. */
const NOBODY = "";

/**
 * The record that the caller with this key started the job whose promise is `job`. Whoever created it has one once he has
 * given it up, which is resolved then.
 */
export const startRecordId = (job: string, key: string): string => `${job}:r${key}`;

interface Claim {
  id: string;
  claimant: unknown;
  pending: boolean;
}

export class Claims {
  readonly #wire: ResonateClient;
  readonly #job: string;
  readonly #timeoutAt: number;

  /** Of the job whose promise is `job`; claims end by themselves at `timeoutAt`. */
  constructor(wire: ResonateClient, job: string, timeoutAt: number) {
    this.#wire = wire;
    this.#job = job;
    this.#timeoutAt = timeoutAt;
  }

  /** Claims the job. False when everybody had given it up before: it is being cancelled. */
  async claim(claimant: string): Promise<boolean> {
    let own = 0;
    for (let n = 1; n <= MAX_CLAIMS; n++) {
      const claim = own < MAX_OWN_CLAIMS ? await this.#take(n, claimant) : await this.#get(n);
      if (!claim) return true;
      if (claim.claimant === NOBODY) return false;
      if (claim.claimant !== claimant) continue;
      if (claim.pending) return true;
      own += 1;
    }
    return true;
  }

  /**
   * Gives the job up for whoever started it. True when nobody wants it any more, nor ever will: it is to be cancelled.
   * His own comes before he looks at the others': of two who give up at once, the second to have done so finds that the
   * first has. A claim that somebody wants ends the look.
   */
  async giveUp(key: string, starter: string | undefined): Promise<boolean> {
    const wanted: number[] = [];
    let next = 1;
    // Whoever created it has made no claim before he has given it up once.
    let mayHaveClaimed = key !== starter || !(await this.#startGivenUp(key));
    for (; mayHaveClaimed && next <= MAX_CLAIMS; next++) {
      const claim = await this.#get(next);
      if (!claim) break;
      if (claim.claimant === NOBODY) return true;
      if (!claim.pending) continue;
      if (claim.claimant !== key) wanted.push(next);
      else {
        await this.#settle(claim.id);
        mayHaveClaimed = false;
      }
    }
    if (next > MAX_CLAIMS) return false;
    // A starter without a record wants it, or is a durable function.
    if (key !== starter && (await this.#read(startRecordId(this.#job, starter ?? "")))?.state !== "resolved")
      return false;
    for (const n of wanted) if ((await this.#get(n))?.pending !== false) return false;
    for (; next <= MAX_CLAIMS; next++) {
      const claim = await this.#take(next, NOBODY);
      if (claim.claimant === NOBODY) return true;
      if (claim.pending) return false;
    }
    return false;
  }

  /** Notes that whoever created the job gives it up: a record that has ended already. Whether it is the first time. */
  async #startGivenUp(key: string): Promise<boolean> {
    const id = startRecordId(this.#job, key);
    const ended = { param: crypto.randomUUID(), tags: { "resonate:timer": "true" } };
    const call = childOf(this.#job, id, Date.now() - 1, ended);
    const record = (await this.#wire.call(call)) as PromiseRecord;
    // It was made, and not ended, before; or the clock of the server is slow.
    if (record.state === "pending") await this.#settle(id);
    return record.param.data === call.data.param.data;
  }

  /** The `n`th claim, which is `claimant`'s unless there was one already. */
  async #take(n: number, claimant: string): Promise<Claim> {
    const id = this.#id(n);
    const call = childOf(this.#job, id, this.#timeoutAt, { param: { claimant } });
    return claimOf((await this.#wire.call(call)) as PromiseRecord);
  }

  async #get(n: number): Promise<Claim | undefined> {
    const record = await this.#read(this.#id(n));
    return record && claimOf(record);
  }

  #read(id: string): Promise<PromiseRecord | undefined> {
    return this.#wire.call({ kind: "promise.get", data: { id } });
  }

  async #settle(id: string): Promise<void> {
    const data = { id, state: "resolved" as const, value: encodeValue(undefined) };
    await this.#wire.call({ kind: "promise.settle", data });
  }

  #id(n: number): string {
    return `${this.#job}:c${n}`;
  }
}

function claimOf({ id, param, state }: PromiseRecord): Claim {
  const { claimant } = decodeValue(param) as { claimant: unknown };
  return { id, claimant, pending: state === "pending" };
}
