import { within } from "../../core/resonate/pacing/backoff.ts";
import type { Config } from "../../functions/config.ts";
import { SharedValue } from "../../functions/http/shared-value.ts";
import type { Callers } from "../../functions/objects/callers.ts";
import type { Settings } from "./calls.ts";

/** How long the operators' object may take to answer, in milliseconds: requests wait for it. */
const PATIENCE = 2_000;

/** The operators' settings, with the callers whom the configuration blocks. */
export class OperatorSettings {
  /** The settings as they were last known. */
  known: Settings;
  readonly #blocked: readonly string[];
  readonly #callers: Callers | undefined;
  readonly #shared: SharedValue<Settings>;

  /** @param fresh how long they are cached, in milliseconds */
  constructor({ BLOCKED_CALLERS = [], isOperated }: Config, callers: Callers | undefined, fresh: number) {
    this.#blocked = BLOCKED_CALLERS;
    this.known = { starts_stopped: false, blocked: [...BLOCKED_CALLERS] };
    this.#callers = isOperated ? callers : undefined;
    this.#shared = new SharedValue({ fresh, failed: fresh, turn: 3_000 });
  }

  /** The settings, asked for unless the cached ones are fresh. */
  readonly get = async (): Promise<Settings> => {
    const callers = this.#callers;
    if (!callers) return this.known;
    try {
      const { value } = await this.#shared.get(async () => {
        const answer = await within(callers.operate("settings"), PATIENCE);
        return answer ?? Promise.reject(new Error("no answer in time"));
      });
      this.known = { ...value, blocked: [...this.#blocked, ...value.blocked] };
    } catch {
      // The last known settings hold while the object does not answer.
    }
    return this.known;
  };
}
