import { type Context, Exponential } from "@resonatehq/sdk/async";
import type { Answer, Entry, Question } from "../../functions/jobs/index.ts";
import type { RemoteStore } from "../../functions/resonate/store.ts";

/**
 * For steps that only call the Resonate server: tried until the job's deadline, because a step that failed while the
 * server was away would have failed for good.
 */
export const UNTIL_DONE = new Exponential({ delay: 200, maxDelay: 5_000 });

/** A question waits for as long as its job may run. */
const AS_LONG_AS_THE_JOB = 10 * 365 * 24 * 60 * 60 * 1_000;

/**
 * The caller of a durable function, to be told how far it is and asked what only a person knows. One is made at the
 * function's start, and used in the same order each time the function runs again.
 */
export class Caller {
  readonly #store: Pick<RemoteStore, "journals">;
  readonly #ctx: Context;
  #entries = 0;
  #asked = 0;
  #message: string | undefined;
  readonly #open = new Map<string, Entry["questions"][string]>();

  constructor(store: Pick<RemoteStore, "journals">, ctx: Context) {
    this.#store = store;
    this.#ctx = ctx;
  }

  /** Says how far the job is, in words. */
  tell(message: string): Promise<void> {
    this.#message = message;
    return this.#write();
  }

  /**
   * Asks a question and sleeps until it is answered, which may take days and holds no worker. Several may be asked at
   * once. Resolves with what the caller did: `accept` with content that fits the question's schema, `decline` or `cancel`.
   */
  ask(question: Question): Promise<Answer> {
    const key = `q${++this.#asked}`;
    const answer = this.#ctx.promise<Answer>({ data: question, timeout: AS_LONG_AS_THE_JOB });
    this.#open.set(key, { promiseId: answer.id, question });
    // Not waited for here: the engine makes the question's promise first, and ends no pass before the entry is written.
    void this.#write();
    return answer.then((given) => {
      this.#open.delete(key);
      return given;
    });
  }

  /** Writes all there is to know as the next entry: whoever reads looks at the newest one only. */
  #write(): Promise<void> {
    const n = ++this.#entries;
    const entry: Entry = {
      questions: Object.fromEntries(this.#open),
      ...(this.#message !== undefined && { message: this.#message }),
    };
    const { id, timeoutAt } = this.#ctx;
    const write = async () => this.#store.journals.writeEntry(id, n, entry, timeoutAt);
    return this.#ctx.run(write, this.#ctx.options({ retryPolicy: UNTIL_DONE }));
  }
}
