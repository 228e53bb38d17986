/** The rules in which releases of the Resonate server differ, found out by requests to the server. */
import { encodeValue, lineage } from "../codec.ts";
import { journalEntryId } from "../ids.ts";
import type { ResonateClient } from "./client.ts";
import { ResonateRefused } from "./failures.ts";

/**
 * The rules of the server at the other end of a connection. They are found out at the first use, and again after
 * {@link askAgain}, as a server can be upgraded while workers run.
 */
export class ServerRules {
  readonly #client: ResonateClient;
  readonly #namespace: string;
  #armsTargetsOnly: Promise<boolean> | undefined;
  /** Whether the server has refused to suspend a task on promises of other jobs, as releases from 0.10 on do. */
  refusesOthers = false;

  constructor(client: ResonateClient, namespace: string) {
    this.#client = client;
    this.#namespace = namespace;
  }

  /**
   * Whether only promises with a target time out by themselves (0.10). On 0.9.8 every promise does, and a promise with a target
   * is dispatched until then.
   */
  armsTargetsOnly(): Promise<boolean> {
    this.#armsTargetsOnly ??= this.#ask().catch((error) => {
      this.#armsTargetsOnly = undefined;
      throw error;
    });
    return this.#armsTargetsOnly;
  }

  /**
   * Forgets the rule that requests can find out, when a connection has been opened. The rule that a refusal has shown is kept, as a
   * quiet connection is replaced several times a minute.
   */
  askAgain(): void {
    this.#armsTargetsOnly = undefined;
  }

  /** Forgets the rules, after the connection was lost. */
  reset(): void {
    this.askAgain();
    this.refusesOthers = false;
  }

  /** Tells the releases apart by a malformed `resonate:delay`: 0.9.8 does not know that tag and accepts it, 0.10 does not. */
  async #ask(): Promise<boolean> {
    const id = journalEntryId(`${this.#namespace}support_0.10`, 0);
    const tags = { ...lineage(id), "resonate:timer": "true", "resonate:target": TIMER_TARGET, "resonate:delay": "?" };
    const data = { id, timeoutAt: 1, param: encodeValue(undefined), tags };
    try {
      const { status } = await this.#client.send("promise.create", data);
      if (status !== 200) throw new Error(`the Resonate server answered ${status} to promise.create`);
      return false;
    } catch (error) {
      if (error instanceof ResonateRefused && error.status === 400) return true;
      throw error;
    }
  }
}

/** The rules of release 0.9.8 and of the embedded server. */
export const RULES_OF_0_9: Pick<ServerRules, "armsTargetsOnly" | "refusesOthers"> = {
  armsTargetsOnly: async () => false,
  refusesOthers: false,
};

/** No worker serves this group. */
const TIMER_TARGET = "poll://any@durable-mcp-timers";

/** The tags that make a server with {@link ServerRules.armsTargetsOnly} time out a promise at `due` without a dispatch before. */
export const timerTags = (due: number): Record<string, string> => ({
  "resonate:target": TIMER_TARGET,
  "resonate:delay": String(due - 1),
});

/** Tags without those that {@link timerTags} adds. */
export function withoutTimerTags(tags: Record<string, string>): Record<string, string> {
  if (tags["resonate:target"] !== TIMER_TARGET) return tags;
  const { "resonate:target": _target, "resonate:delay": _delay, ...others } = tags;
  return others;
}
