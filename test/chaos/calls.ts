/** The calls of a run's clients. Distinguishes failures that a disruption explains from violations. */
import { setTimeout as delay } from "node:timers/promises";
import type { McpClient } from "../support/clients.ts";
import { wholeResult } from "../support/results.ts";
import { type RpcAnswer, rpc, TASKS } from "../support/rpc.ts";
import { type ClientLog, preview } from "./client-log.ts";

/** How long a client waits for an answer before it repeats the call, in milliseconds. */
const CALL_TIMEOUT_MS = 8_000;
/** The first and the longest pause before a call is repeated, in milliseconds. Each pause is twice the one before. */
const FIRST_PAUSE = 200;
const LAST_PAUSE = 2_000;

/** The product's answer while Resonate is down. It must name the cause, and say that the call may be repeated. */
const UNAVAILABLE = /Resonate server.*unavailable.*[Rr]epeat the same (call|request)/s;

/** The capabilities of a client that understands tasks and shows forms to its user. */
const CAPABILITIES = { ...TASKS, elicitation: { form: {} } };

/** The run ended before a call was answered. */
export class RunOver extends Error {}

/** A client of the 2026-07-28 revision that understands tasks, and clients of both revisions that do not. */
export class Calls {
  readonly #log: ClientLog;
  readonly #url: string;
  readonly #over: AbortSignal;

  constructor(url: string, log: ClientLog, over: AbortSignal) {
    this.#url = url;
    this.#log = log;
    this.#over = over;
  }

  /** Calls a tool once. Undefined without an answer, or if Resonate is down. */
  // oxlint-disable-next-line typescript/no-explicit-any -- structured content, whose shape the callers know
  async tool(client: McpClient, name: string, args: object): Promise<any> {
    const answer = await this.#attempt((signal) => client.callTool(name, args, { signal }));
    if (!answer) return undefined;
    if (!answer.isError) return answer.content;
    // A tool that waits for a job fails if the job fails, which is a proper answer.
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

  /** The whole result of a job of any size. Undefined without an answer. */
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
    // The signal is not used: with thousands of waiting calls, adding a listener to it takes longer and longer.
    await delay(ms);
    if (this.#over.aborted) throw new RunOver();
  }

  async #attempt<T>(call: (signal: AbortSignal) => Promise<T>): Promise<T | undefined> {
    this.#log.calls += 1;
    try {
      return await call(AbortSignal.timeout(CALL_TIMEOUT_MS));
    } catch (error) {
      this.#log.failure(describe(error));
      return undefined;
    }
  }

  #refused(what: string, params: object, reason: string): undefined {
    this.#log.failure(reason);
    if (UNAVAILABLE.test(reason)) return undefined;
    this.#log.violation("unexpected answer", `${what} ${preview(params)}: ${reason}`);
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
