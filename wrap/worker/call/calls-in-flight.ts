/** The calls in flight in this process, and the permits to send calls. */
import { LRUCache } from "lru-cache";
import type { CallInFlight } from "./call-in-flight.ts";
import type { Slot } from "./slots.ts";

/** How long a finished call is kept for its job, in milliseconds. */
const FINISHED_CALL_TTL_MS = 5 * 60_000;

/** A job's permit to send its call. */
interface Permit {
  at: string | undefined;
  slot: Slot | undefined;
}

/** The calls of this process by job. */
export class CallsInFlight {
  readonly #calls = new LRUCache<string, CallInFlight>({ ttl: FINISHED_CALL_TTL_MS, ttlAutopurge: true });
  readonly #starts = new Map<string, Promise<CallInFlight>>();
  /**
   * The jobs that have recorded that they are about to send their call and have not sent it yet, each with the time in that record
   * and the slot that it holds, if any.
   */
  readonly #permits = new Map<string, Permit>();

  /** The job's last call in this process. */
  of(job: string): CallInFlight | undefined {
    return this.#calls.get(job);
  }

  /** Starts a job's call once, even if two steps of the job request it at the same time. */
  begin(job: string, base: number, begin: () => Promise<CallInFlight>): Promise<CallInFlight> {
    const key = `${base} ${job}`;
    const start = this.#starts.get(key) ?? begin().finally(() => this.#starts.delete(key));
    this.#starts.set(key, start);
    return start;
  }

  put(job: string, call: CallInFlight): void {
    this.#calls.set(job, call, { ttl: 0 });
    void call.completion.then(() => {
      if (this.#calls.get(job) === call) this.#calls.set(job, call);
    });
  }

  forget(job: string): void {
    this.#calls.delete(job);
    this.#dropPermit(job);
  }

  #dropPermit(job: string): void {
    this.#permits.get(job)?.slot?.free();
    this.#permits.delete(job);
  }

  /**
   * Permits a job to send its call once. `at`: the time in the job's record of this call, if it writes one. The slot is freed when
   * `signal` is aborted before the call is sent.
   */
  permit(job: string, at: string | undefined, slot?: Slot, signal?: AbortSignal): void {
    this.#dropPermit(job);
    this.#permits.set(job, { at, slot });
    const loseSlot = () => {
      if (slot && this.#permits.get(job)?.slot === slot) this.permit(job, at);
    };
    signal?.addEventListener("abort", loseSlot, { once: true });
  }

  /**
   * Takes the permit to send the call whose record has this time. A permit for another record is dropped: this worker lost the job
   * before its own record was written, and the worker that wrote the present record may have sent the call.
   */
  takePermit(job: string, at: string | undefined): Permit | undefined {
    const permit = this.#permits.get(job);
    if (permit?.at === at) this.#permits.delete(job);
    else this.#dropPermit(job);
    return permit?.at === at ? permit : undefined;
  }
}
