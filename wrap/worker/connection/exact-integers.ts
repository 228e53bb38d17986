/**
 * Keeps the digits of integers in what a wrapped server sends. The SDK's transports parse it with `JSON.parse`, which rounds an
 * integer beyond ±2⁵³. Before that, such an integer becomes a text with a secret beginning; afterwards, raw JSON.
 */
import { ReadBuffer } from "@modelcontextprotocol/client";
import { exactJsonOf, integerOf, isExactInteger, isRecord, parseExact } from "../../../core/resonate/index.ts";
import { MessageTooLong } from "../host/errors.ts";
import { lineReader } from "../host/line-reader.ts";

/** Begins the text of a marked integer. No server can know it. */
const MARK = `integer-${crypto.randomUUID()}:`;

/** Whether any integer has been marked in this process. */
let hasMarked = false;

/** The JSON of a message with its integers marked; other text is unchanged. */
function markIntegers(json: string): string {
  if (!/\d{16}/.test(json)) return json;
  let marked = false;
  const text = JSON.stringify(exactJsonOf(json), (_key, value) => {
    if (!isExactInteger(value)) return value;
    marked = true;
    return MARK + value.rawJSON;
  });
  hasMarked ||= marked;
  return marked ? text : json;
}

/** The message, changed in place, with its marked integers as raw JSON. */
export function restoreIntegers<Message>(message: Message): Message {
  if (hasMarked) restore(message);
  return message;
}

function restore(value: unknown): unknown {
  if (typeof value === "string") return value.startsWith(MARK) ? integerOf(value.slice(MARK.length)) : value;
  if (!Array.isArray(value) && !isRecord(value)) return value;
  for (const [key, part] of Object.entries(value)) {
    const now = restore(part);
    // An assignment to a field called `__proto__` would change the prototype.
    if (now !== part) Object.defineProperty(value, key, { value: now });
  }
  return value;
}

/** Gives the SDK's transport a response in which integers keep their digits. */
export function exactResponse(response: Response): Response {
  const isStream = /^text\/event-stream\b/i.test(response.headers.get("content-type") ?? "");
  const body = isStream ? response.body?.pipeThrough(markedLines()) : undefined;
  const json = async () => parseExact(await response.text());
  return Object.defineProperties(response, body ? { body: { value: body } } : { json: { value: json } });
}

/** Marks the integers in the data of an event stream, whose lines are passed on when they are complete. */
function markedLines(): TransformStream<Uint8Array, Uint8Array> {
  const decoder = new TextDecoder();
  const encoder = new TextEncoder();
  const marked = (lines: string) =>
    encoder.encode(lines.replace(/^(data: ?)(.*)$/gm, (_line, field, data) => field + markIntegers(data)));
  let rest = "";
  return new TransformStream({
    transform(bytes, controller) {
      const text = decoder.decode(bytes, { stream: true });
      const end = Math.max(text.lastIndexOf("\n"), text.lastIndexOf("\r")) + 1;
      if (end > 0) controller.enqueue(marked(rest + text.slice(0, end)));
      rest = end > 0 ? text.slice(end) : rest + text;
    },
    flush(controller) {
      controller.enqueue(marked(rest + decoder.decode()));
    },
  });
}

/** The SDK's buffer of a program's output, in which integers are marked. */
export class ExactReadBuffer extends ReadBuffer {
  readonly #read: (chunk: Buffer) => void;

  constructor(maxBytes: number) {
    super({ maxBufferSize: maxBytes });
    const append = (line: string) => super.append(Buffer.from(`${markIntegers(line)}\n`));
    this.#read = lineReader(maxBytes, append, () => {
      throw new MessageTooLong(maxBytes);
    });
  }

  override append(chunk: Buffer): void {
    this.#read(chunk);
  }
}
