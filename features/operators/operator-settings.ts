import type { Settings } from "../../core/jobs/index.ts";
import { within } from "../../core/resonate/index.ts";
import { SharedValue } from "../../functions/http/shared-value.ts";

/** How long the operators' object may take to answer, in milliseconds: requests wait for it. */
const ANSWER_TIMEOUT_MS = 2_000;

/** The operators' settings, with the callers whom the configuration blocks. */
export class OperatorSettings {
  /** The settings as they were last known. */
  known: Settings;
  readonly #blocked: readonly string[];
  readonly #load: (() => Promise<Settings>) | undefined;
  readonly #shared: SharedValue<Settings>;

  /**
   * @param load asks the operators' object; undefined in a deployment without operators
   * @param blocked the callers whom the configuration blocks
   * @param fresh how long settings are cached, in milliseconds
   */
  constructor(load: (() => Promise<Settings>) | undefined, blocked: readonly string[], freshForMs: number) {
    this.#load = load;
    this.#blocked = blocked;
    this.known = { starts_stopped: false, blocked: [...blocked] };
    this.#shared = new SharedValue({ freshForMs, failureForMs: freshForMs, turnForMs: 3_000 });
  }

  /** The settings, asked for unless the cached ones are fresh. */
  readonly get = async (): Promise<Settings> => {
    const load = this.#load;
    if (!load) return this.known;
    try {
      const { value } = await this.#shared.get(async () => {
        const answer = await within(load(), ANSWER_TIMEOUT_MS);
        return answer ?? Promise.reject(new Error("no answer in time"));
      });
      this.known = { ...value, blocked: [...this.#blocked, ...value.blocked] };
    } catch {
      // The last known settings hold while the object does not answer.
    }
    return this.known;
  };
}
