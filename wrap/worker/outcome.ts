/** What is made of what a wrapped server answers, and of what it does not. */
import { NonRetryableError } from "../../core/durable/context.ts";
import { NOT_DONE } from "../job.ts";
import type { WrapOptions } from "../options.ts";
import { CallRefused, Gone, Lost, NotSent, Unsendable } from "./errors.ts";

type Json = Record<string, unknown>;

/** Keys that are about the connection, and not about the call. */
const SERVER_INFO = "io.modelcontextprotocol/serverInfo";

/** The largest result that is kept, in bytes of JSON: the engine keeps a little more, and the store 2 MiB with its record. */
const MAX_RESULT = 900_000;
/** What of it is for the words that say what is left out. */
const WORDS = 2_000;
/** The longest message of an error of the protocol, in characters. */
const MAX_MESSAGE = 20_000;

/** The server's answer as the tool's. */
export function toolAnswer(result: Json): Json {
  const { resultType: _, _meta, ...rest } = result;
  const { [SERVER_INFO]: __, ...meta } = { ...(_meta as Json | undefined) };
  const whole = { ...rest, ...(Object.keys(meta).length > 0 && { _meta: meta }) };
  const json = JSON.stringify(whole);
  const size = json.length * 3 <= MAX_RESULT ? 0 : Buffer.byteLength(json);
  return size <= MAX_RESULT ? whole : tooLarge(rest, size);
}

/** The call is done, and what it brought is too large to be kept whole: the parts that fit, and the beginning of a text. */
function tooLarge({ content, structuredContent }: Json, size: number): Json {
  const parts = Array.isArray(content) ? (content as Json[]) : [];
  const kept: Json[] = [];
  let room = MAX_RESULT - WORDS;
  let left = 0;
  for (const part of parts) {
    const fits = fitting(part, room);
    if (fits !== part) left += 1;
    if (!fits) continue;
    kept.push(fits);
    room -= sizeOf(fits) + 1;
  }
  const without = structuredContent === undefined ? "" : ", and without its structured content";
  const words = `The call was made, and the server answered with ${size} bytes; up to ${MAX_RESULT} are kept. Below is what fits of its ${parts.length} parts, ${left} of them cut short or left out${without}. Ask for less.`;
  return { isError: true, content: [{ type: "text", text: words }, ...kept] };
}

const sizeOf = (value: unknown) => Buffer.byteLength(JSON.stringify(value));

/** As much of a part as fits into so many bytes: all of it, or the beginning of a text. */
function fitting(part: Json, room: number): Json | undefined {
  if (sizeOf(part) <= room) return part;
  if (part.type !== "text" || typeof part.text !== "string") return undefined;
  let { text } = part;
  for (let size = sizeOf({ ...part, text }); size > room; size = sizeOf({ ...part, text })) {
    if (text === "") return undefined;
    text = text
      .slice(0, Math.min(text.length - 1, Math.floor((text.length * room) / size)))
      .replace(/[\uD800-\uDBFF]$/, "");
  }
  return { ...part, text };
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
