/** What is made of what a wrapped server answers, and of what it does not. */
import { NonRetryableError } from "../../core/durable/context.ts";
import { NOT_DONE } from "../job.ts";
import type { WrapOptions } from "../options.ts";
import { CallRefused, Lost } from "./errors.ts";

type Json = Record<string, unknown>;

/** Keys that are about the connection, and not about the call. */
const SERVER_INFO = "io.modelcontextprotocol/serverInfo";

/** The largest result that is kept, in bytes of JSON: the engine keeps a little more. How much is shown of one that is not. */
const MAX_RESULT = 900_000;
const SHOWN = 20_000;

/** The server's answer as the tool's. */
export function toolAnswer(result: Json): Json {
  const { resultType: _, _meta, ...rest } = result;
  const { [SERVER_INFO]: __, ...meta } = { ...(_meta as Json | undefined) };
  const whole = { ...rest, ...(Object.keys(meta).length > 0 && { _meta: meta }) };
  const json = JSON.stringify(whole);
  const size = json.length * 3 <= MAX_RESULT ? 0 : Buffer.byteLength(json);
  return size <= MAX_RESULT ? whole : tooLarge(rest, size);
}

/** The call is done, and what it brought is too large to be kept. */
function tooLarge({ content }: Json, size: number): Json {
  const parts = Array.isArray(content) ? (content as { type?: unknown; text?: unknown }[]) : [];
  const texts = parts.flatMap(({ type, text }) => (type === "text" && typeof text === "string" ? [text] : []));
  const said = texts.join("\n").slice(0, SHOWN);
  const words = `The call was made, and the server answered with ${size} bytes; up to ${MAX_RESULT} are kept. Ask for less.`;
  const begins = said === "" ? "" : ` The text of the answer begins:\n\n${said}`;
  return { isError: true, content: [{ type: "text", text: words + begins }] };
}

/** The server's answer is an error of the protocol: a tool says it in words. */
export function protocolError(code: number, message: string): Json {
  return { isError: true, content: [{ type: "text", text: `MCP error ${code}: ${message.slice(0, SHOWN)}` }] };
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
  return error;
}
