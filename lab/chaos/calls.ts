/** Calls of a run's clients. While parts are away, calls fail; this tells the failures that may be from those that may not. */
import { setTimeout as delay } from "node:timers/promises";
import type { McpClient } from "../../test/support/clients.ts";
import { wholeResult } from "../../test/support/results.ts";
import { type RpcAnswer, rpc, TASKS } from "../../test/support/rpc.ts";
import { type Journal, preview } from "./journal.ts";

/** How long a client waits for an answer before it asks again, in milliseconds. */
const PATIENCE = 8_000;
/** The pause before a call is repeated, in milliseconds: doubled from first to last. */
const FIRST_PAUSE = 200;
const LAST_PAUSE = 2_000;

/** What the product says while Resonate is away: it names the cause and that the same call may be repeated. */
const UNAVAILABLE = /Resonate server.*unavailable.*[Rr]epeat the same (call|request)/s;

/** Of a client that understands tasks and shows its user forms. */
const CAPABILITIES = { ...TASKS, elicitation: { form: {} } };

/** A run that was given up while a call was still to be answered. */
export class RunOver extends Error {}

/** A client of the 2026-07-28 revision that understands tasks, and clients of both revisions that do not. */
export class Calls {
  readonly #journal: Journal;
  readonly #url: string;
  readonly #over: AbortSignal;

  constructor(url: string, journal: Journal, over: AbortSignal) {
    this.#url = url;
    this.#journal = journal;
    this.#over = over;
  }

  /** Calls a tool once. Undefined when there was no answer, or that Resonate is away. */
  // biome-ignore lint/suspicious/noExplicitAny: structured content, which the callers know
  async tool(client: McpClient, name: string, args: object): Promise<any> {
    const answer = await this.#attempt((signal) => client.callTool(name, args, { signal }));
    if (!answer) return undefined;
    if (!answer.isError) return answer.content;
    // A tool that waits for a job passes the job's failure on as its own.
    if (answer.content.status) return answer.content;
    return this.#refused(name, args, answer.text);
  }

  /** Sends a request of the Tasks extension, or a tool call of a client that understands it, once. */
  async task(method: string, params: object): Promise<RpcAnswer["result"]> {
    const answer = await this.#attempt((signal) =>
      rpc(this.#url, method, params, { capabilities: CAPABILITIES, signal }),
    );
    if (!answer) return undefined;
    const { status, error, result } = answer;
    if (error) return this.#refused(method, params, `${status} ${error.code}: ${error.message}`);
    if (result.isError) return this.#refused(method, params, result.content[0]?.text);
    return result;
  }

  /** The whole result of a job, whatever its size. Undefined when there was no answer. */
  whole(name: string): Promise<unknown> {
    return this.#attempt((signal) => wholeResult(this.#url, name, { signal }));
  }

  /** Repeats a call until it is answered. @throws {RunOver} */
  async persist<T>(call: () => Promise<T | undefined>): Promise<T> {
    for (let pause = FIRST_PAUSE; ; pause = Math.min(pause * 2, LAST_PAUSE)) {
      if (this.#over.aborted) throw new RunOver();
      const answer = await call();
      if (answer !== undefined) return answer;
      await this.pause(pause);
    }
  }

  /** @throws {RunOver} */
  async pause(ms: number): Promise<void> {
    // Not ended by the signal: with thousands that wait, every listener on it would make adding the next one slower.
    await delay(ms);
    if (this.#over.aborted) throw new RunOver();
  }

  async #attempt<T>(call: (signal: AbortSignal) => Promise<T>): Promise<T | undefined> {
    this.#journal.calls += 1;
    try {
      return await call(AbortSignal.timeout(PATIENCE));
    } catch (error) {
      this.#journal.failure(describe(error));
      return undefined;
    }
  }

  #refused(what: string, params: object, reason: string): undefined {
    this.#journal.failure(reason);
    if (UNAVAILABLE.test(reason)) return undefined;
    this.#journal.violation("unexpected answer", `${what} ${preview(params)}: ${reason}`);
    return undefined;
  }
}

function describe(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { code } = error as { code?: unknown };
  const cause =
    error.cause instanceof Error ? ` (${(error.cause as NodeJS.ErrnoException).code ?? error.cause.message})` : "";
  return `${error.name}${code === undefined ? "" : ` ${code}`}: ${error.message.split("\n")[0]}${cause}`;
}
