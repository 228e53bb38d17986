/**
 * Tracks which callers still want a shared job, so that one caller's cancellation does not end it for the others.
 *
 * The promise names its creator, who wants the job until a record says that the creator gave it up. Every other caller has
 * a start record and makes a claim. The claims of a job are a sequence of promises, each pending while its claimant wants
 * the job. Creating the next claim is atomic, which decides every race: the last caller to give the job up must create the
 * next claim for nobody before it cancels. A caller that comes later finds that claim, and so knows that the job is being
 * cancelled. If a caller has made that claim first and still wants the job, the job goes on.
 */
import { childOf, decodeValue, getOf, resolveOf } from "../resonate/codec.ts";
import type { Requests } from "../resonate/connection/client.ts";
import type { PromiseRecord } from "../resonate/connection/protocol.ts";
import { claimId, startRecordId } from "../resonate/ids.ts";
import { append } from "../resonate/sequence.ts";

/** A job with this many claims stays claimed for good, which bounds the time to claim and to give up. */
const MAX_CLAIMS = 16;

/**
 * How many claims one caller can make by starting and giving up in turns. Without this limit one caller could use up all claims
 * and keep the others from cancelling. Further starts of that caller claim nothing.
 */
const MAX_OWN_CLAIMS = 2;

/** The claimant of a job that is being cancelled. */
const NO_CLAIMANT = "";

interface Claim {
  id: string;
  claimant: unknown;
  pending: boolean;
}

export class Claims {
  readonly #wire: Requests;
  readonly #job: string;
  readonly #timeoutAt: number;

  /** The claims of the job whose promise id is `job`. They time out at `timeoutAt`. */
  constructor(wire: Requests, job: string, timeoutAt: number) {
    this.#wire = wire;
    this.#job = job;
    this.#timeoutAt = timeoutAt;
  }

  /** Claims the job. False when all callers have given it up already, and it is being cancelled. */
  async claim(claimant: string): Promise<boolean> {
    let ownClaim = 0;
    const take = (n: number) => (ownClaim < MAX_OWN_CLAIMS ? this.#take(n, claimant) : this.#get(n));
    const isDone = (claim: Claim | undefined, n: number) => {
      if (!claim || claim.claimant === NO_CLAIMANT) return true;
      if (claim.claimant !== claimant) return n === MAX_CLAIMS;
      ownClaim += 1;
      return claim.pending || n === MAX_CLAIMS;
    };
    const { entry } = await append(take, { after: 0, isDone });
    return entry?.claimant !== NO_CLAIMANT;
  }

  /**
   * Gives the job up for the caller with this key, who started it. True when nobody wants the job, and nobody can claim it any
   * more, so that the caller must cancel it. Settles the caller's own claim before it reads the others, so that of two
   * callers who give up at once the second sees that the first has given up.
   */
  async giveUp(key: string, starter: string | undefined): Promise<boolean> {
    const claims: number[] = [];
    let next = 1;
    // The creator makes no claim before it has given the job up once.
    let mayHaveClaimed = key !== starter || !(await this.#startGivenUp(key));
    for (; mayHaveClaimed && next <= MAX_CLAIMS; next++) {
      const claim = await this.#get(next);
      if (!claim) break;
      if (claim.claimant === NO_CLAIMANT) return true;
      if (!claim.pending) continue;
      if (claim.claimant !== key) claims.push(next);
      else {
        await this.#wire.call(resolveOf(claim.id));
        mayHaveClaimed = false;
      }
    }
    if (next > MAX_CLAIMS) return false;
    // Without a settled start record the creator still wants the job, or is a durable function.
    if (key !== starter && (await this.#read(startRecordId(this.#job, starter ?? "")))?.state !== "resolved")
      return false;
    for (const n of claims) if ((await this.#get(n))?.pending !== false) return false;
    const isDone = ({ claimant, pending }: Claim, n: number) => claimant === NO_CLAIMANT || pending || n === MAX_CLAIMS;
    const { entry } = await append((n) => this.#take(n, NO_CLAIMANT), { after: next - 1, isDone });
    return entry.claimant === NO_CLAIMANT;
  }

  /** Records, as a promise that is created settled, that the creator gives the job up. Returns whether it is the first time. */
  async #startGivenUp(key: string): Promise<boolean> {
    const id = startRecordId(this.#job, key);
    const ended = { param: crypto.randomUUID(), tags: { "resonate:timer": "true" } };
    const call = childOf(id, Date.now() - 1, ended);
    const record = (await this.#wire.call(call)) as PromiseRecord;
    // Pending if an earlier attempt created it and did not settle it, or if the server's clock is slow.
    if (record.state === "pending") await this.#wire.call(resolveOf(id));
    return record.param.data === call.data.param.data;
  }

  /** Makes the `n`th claim for `claimant`, or returns the existing one. */
  async #take(n: number, claimant: string): Promise<Claim> {
    const id = claimId(this.#job, n);
    const call = childOf(id, this.#timeoutAt, { param: { claimant } });
    return claimOf((await this.#wire.call(call)) as PromiseRecord);
  }

  async #get(n: number): Promise<Claim | undefined> {
    const record = await this.#read(claimId(this.#job, n));
    return record && claimOf(record);
  }

  #read(id: string): Promise<PromiseRecord | undefined> {
    return this.#wire.call(getOf(id));
  }
}

function claimOf({ id, param, state }: PromiseRecord): Claim {
  const { claimant } = decodeValue(param) as { claimant: unknown };
  return { id, claimant, pending: state === "pending" };
}

/** Everyone who has ever claimed a job. The creator of its promise may be missing, as it needs no claim. */
export async function claimantsOf(wire: Requests, job: string): Promise<string[]> {
  const claimants: string[] = [];
  for (let n = 1; n <= MAX_CLAIMS; n++) {
    const record = await wire.call(getOf(claimId(job, n)));
    if (!record) break;
    claimants.push(String(claimOf(record).claimant));
  }
  return claimants;
}
