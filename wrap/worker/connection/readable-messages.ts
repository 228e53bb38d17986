/** The SDK's transports, given messages that they read as servers mean them: see `host/marked-integers.ts` and `protocol-values.ts`. */
import { type JSONRPCMessage, ReadBuffer } from "@modelcontextprotocol/client";
import { isTooDeep, parseExact } from "../../../core/resonate/index.ts";
import { MessageTooLong } from "../host/errors.ts";
import { MAX_LEVELS } from "../host/host-config.ts";
import { lineReader } from "../host/line-reader.ts";
import { markedJson } from "../host/marked-integers.ts";
import type { ProgramIds } from "../host/program-ids.ts";
import { tidyMessage } from "../protocol-values.ts";

/** Matches the JSON of a message that the SDK's transports may not read as it is meant. */
const ODD_PATTERN = /\d{16}|"id"\s*:\s*null|"capabilities"/;

/** The JSON of a message as the SDK's transports read it; other text is unchanged, and so is a message that is refused for its depth. */
function readable(json: string): string {
  if (!ODD_PATTERN.test(json) || isTooDeep(json, MAX_LEVELS)) return json;
  try {
    return markedJson(tidyMessage(parseExact(json)));
  } catch {
    return json;
  }
}

/** Gives the SDK's transport a response in which integers keep their digits. */
export function readableResponse(response: Response): Response {
  const isStream = /^text\/event-stream\b/i.test(response.headers.get("content-type") ?? "");
  const body = isStream ? response.body?.pipeThrough(readableLines()) : undefined;
  if (body) return Object.defineProperties(response, { body: { value: body } });
  const text = response.text.bind(response);
  const json = async () => tidyMessage(parseExact(await text()));
  // Of a refusal, the SDK reads the text.
  return Object.defineProperties(response, {
    json: { value: json },
    ...(!response.ok && { text: { value: async () => readable(await text()) } }),
  });
}

/** Changes the messages of an event stream, whose lines are passed on when they are complete. */
function readableLines(): TransformStream<Uint8Array, Uint8Array> {
  const decoder = new TextDecoder();
  const encoder = new TextEncoder();
  const changed = (lines: string) =>
    encoder.encode(lines.replace(/^(data: ?)(.*)$/gm, (_line, field, data) => field + readable(data)));
  let rest = "";
  return new TransformStream({
    transform(bytes, controller) {
      const text = decoder.decode(bytes, { stream: true });
      const end = Math.max(text.lastIndexOf("\n"), text.lastIndexOf("\r")) + 1;
      if (end > 0) controller.enqueue(changed(rest + text.slice(0, end)));
      rest = end > 0 ? text.slice(end) : rest + text;
    },
    flush(controller) {
      controller.enqueue(changed(rest + decoder.decode()));
    },
  });
}

/** The SDK's buffer of a program's output. */
export class MessageBuffer extends ReadBuffer {
  readonly #read: (chunk: Buffer) => void;
  readonly #ids: ProgramIds;

  constructor(maxBytes: number, ids: ProgramIds) {
    super({ maxBufferSize: maxBytes });
    this.#ids = ids;
    const append = (line: string) => super.append(Buffer.from(`${readable(line)}\n`));
    this.#read = lineReader(maxBytes, append, () => {
      throw new MessageTooLong(maxBytes);
    });
  }

  override append(chunk: Buffer): void {
    this.#read(chunk);
  }

  override readMessage(): JSONRPCMessage | null {
    const message = super.readMessage();
    return message && this.#ids.inward(message);
  }
}
