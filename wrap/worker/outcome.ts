/** What is made of what a wrapped server answers, and of what it does not. */

import { keepInParts } from "../../core/author/chunks.ts";
import { NonRetryableError, type Step } from "../../core/definitions/context.ts";
import { PARTS } from "../../core/tools/results.ts";
import { NOT_DONE } from "../call-job.ts";
import type { WrapOptions } from "../wrap-options.ts";
import { CallRefused, Gone, Lost, NotSent, Unsendable } from "./errors.ts";

type Json = Record<string, unknown>;

/** Keys that are about the connection, and not about the call. */
const SERVER_INFO = "io.modelcontextprotocol/serverInfo";

/** The largest answer that is one promise, in bytes of JSON: the engine keeps a little more, and the store 2 MiB with its record. */
const MAX_WHOLE = 900_000;
/** The longest message of an error of the protocol, in characters. */
const MAX_MESSAGE = 20_000;

/** The server's answer as the tool's. */
export function toolAnswer(result: Json): Json {
  const { resultType: _, _meta, [PARTS]: __, ...rest } = result;
  const { [SERVER_INFO]: ___, ...meta } = { ...(_meta as Json | undefined) };
  return { ...rest, ...(Object.keys(meta).length > 0 && { _meta: meta }) };
}

/** The server's answer as the job keeps it: in parts, where it is too large for one promise. */
export async function keptAnswer(step: Step, result: Json): Promise<Json> {
  const answer = toolAnswer(result);
  const json = JSON.stringify(answer);
  if (json.length * 3 <= MAX_WHOLE || Buffer.byteLength(json) <= MAX_WHOLE) return answer;
  return { ...(await keepInParts(step, answer)), ...(answer.isError === true && { isError: true }) };
}

/** The server's answer is an error of the protocol: a tool says it in words. */
export function protocolError(code: number, message: string): Json {
  return { isError: true, content: [{ type: "text", text: `MCP error ${code}: ${message.slice(0, MAX_MESSAGE)}` }] };
}

/** What is to be said where a call has been sent and may have had its effect. */
export function unknownEffect({ name }: WrapOptions, at: string, why: string): NonRetryableError {
  return new NonRetryableError(
    `The call was sent to ${name} at ${at}, and ${why}: whether it had its effect is unknown. It is not sent again, because nothing says that a repeat is safe. Look what has become of it; to send it again, make another call.`,
  );
}

/** Why a call has failed, as the job's reason or as what is tried again. `at`: when it was sent, for one that may not be repeated. */
export function failure(error: unknown, options: WrapOptions, at: string | undefined): unknown {
  const { name } = options;
  if (error instanceof CallRefused) {
    const reason = `${NOT_DONE}: ${name} refused the call: ${error.message}`;
    return at === undefined && error.mayGetBetter ? new Error(reason) : new NonRetryableError(reason);
  }
  if (error instanceof Lost) {
    return at === undefined ? new Error(`${name}: ${error.message}`) : unknownEffect(options, at, error.message);
  }
  if (error instanceof Gone && at !== undefined) return unknownEffect(options, at, error.message);
  return error;
}

/** An error that says that nothing was sent, as a job's reason. */
export function explained(error: unknown): unknown {
  if (!(error instanceof NotSent)) return error;
  const words = `${NOT_DONE}: ${error.message}`;
  return error instanceof Unsendable ? new NonRetryableError(words) : new Error(words, { cause: error });
}

export function explain(error: unknown): never {
  throw explained(error);
}
