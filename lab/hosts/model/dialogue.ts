/** The content that all vendors' message formats have in common, without their forms. */

/** The content of a host's request to its model. */
export interface Heard {
  /** The tools that the model may call now, by the names that the host gives them. */
  tools: readonly string[];
  /** The texts of all results so far, in order. */
  results: readonly string[];
  /** The size of the request. */
  bytes: number;
}

export interface Call {
  /** The host's name for the tool. */
  tool: string;
  args: object;
}

/** A message of the scripted model: calls, or its last text. */
export type Reply = { calls: readonly Call[] } | { text: string };

/** A vendor's streamed message format. */
export interface Format {
  /** Whether a request asks for the next message of a conversation that has tools. */
  isTurn(path: string, body: Body): boolean;
  hear(body: Body): Omit<Heard, "bytes">;
  /** The data of the stream's events, in order; `event` is the event's name if the vendor uses names. */
  say(reply: Reply, model: string): { event?: string; data: object | "[DONE]" }[];
}

/** A vendor's request, in JSON. */
// oxlint-disable-next-line typescript/no-explicit-any -- each format knows the shape of its own requests
export type Body = any;

/** The text of a content, which is a string or a list of parts with texts. */
export function textOf(content: unknown): string {
  if (typeof content === "string") return content;
  if (Array.isArray(content)) return content.map(textOf).join("\n");
  if (typeof content !== "object" || content === null) return "";
  const { text, output, content: inner } = content as Record<string, unknown>;
  const [first] = [text, output, inner].filter((each) => each !== undefined);
  return first === undefined ? JSON.stringify(content) : textOf(first);
}

let made = 0;
/** A unique id for a message. */
export const newId = (prefix: string): string => `${prefix}_${++made}${Date.now().toString(36)}`;
