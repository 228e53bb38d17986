/** What a wrapped server answers, as content: without what only this server says. */
import { type CallToolResult, FILES_META, OURS, ProtocolError } from "./mcp.ts";
import { JOB_SCHEME, MAX_MEDIA } from "./results.ts";

export { viewOfRange, withMedia } from "./byte-range.ts";

/** The key under which a stored answer holds the protocol error that it stands for. */
export const RPC_FAILURE = "durable-mcp:error";

/** The key under which a stored answer holds the references to its files, in place of its largest images, sounds and files. */
export const FILES = "durable-mcp:files";

/** A protocol error as JSON-RPC has it. */
export interface RpcFailure {
  code: number;
  message: string;
  data?: unknown;
}

/** The protocol error that a stored answer stands for; undefined for any other value. */
export function protocolErrorIn(stored: unknown): ProtocolError | undefined {
  const failure = (stored as { [RPC_FAILURE]?: RpcFailure } | null | undefined)?.[RPC_FAILURE];
  return failure && new ProtocolError(failure.code, failure.message, failure.data);
}

type Part = CallToolResult["content"][number];

/** The answer without fields of this server's: they would be taken for its word. */
function asContent(stored: unknown): CallToolResult {
  const entries = Object.entries(Object(stored)).flatMap(([key, value]): [string, unknown][] => {
    if (key === "resultType" || key === FILES) return [];
    if (key === "content") return [[key, Array.isArray(value) ? value.map(asPart) : []]];
    if (key !== "_meta") return [[key, value]];
    const meta = Object.entries(Object(value)).filter(([name]) => !OURS.test(name));
    return meta.length > 0 ? [[key, Object.fromEntries(meta)]] : [];
  });
  const answer = Object.fromEntries(entries) as CallToolResult;
  const files = (stored as { [FILES]?: unknown } | null | undefined)?.[FILES];
  const _meta = files === undefined ? answer._meta : { ...answer._meta, [FILES_META]: files };
  return { ...answer, content: answer.content ?? [], ...(_meta && { _meta }) };
}

/** A part without a kind, and a link to a job that the server has made up, are shown as text. */
function asPart(part: unknown): Part {
  const { type, uri, resource } = Object(part);
  const isOurs = [uri, resource?.uri].some((each) => String(each).toLowerCase().startsWith(JOB_SCHEME));
  return typeof type === "string" && !isOurs ? (part as Part) : { type: "text", text: JSON.stringify(part) };
}

/** The base64 of an image, a sound or a file; empty for any other part. */
export function base64Of(part: unknown): string {
  const { type, data, resource } = Object(part);
  const found = type === "resource" ? resource?.blob : type === "image" || type === "audio" ? data : "";
  return typeof found === "string" ? found : "";
}

const isMedium = (part: unknown): boolean => base64Of(part) !== "";

const mediaOf = ({ content }: Pick<CallToolResult, "content">): Part[] => content.filter(isMedium);

/** The size of an answer in characters: of its base64, and of the rest, in which text and its structured twin count once. */
export function sizeOf({ content, structuredContent, ...rest }: CallToolResult): { media: number; text: number } {
  const characters = (value: unknown) => JSON.stringify(value)?.length ?? 0;
  const media = content.reduce((sum, part) => sum + base64Of(part).length, 0);
  const text = Math.max(characters(content) - media, characters(structuredContent)) + characters(rest);
  return { media, text };
}

/** The answer with its media replaced by words, for an answer that shows the media beside it. */
function withoutMedia(answer: CallToolResult): CallToolResult {
  const { length } = mediaOf(answer);
  if (length === 0) return answer;
  let n = 0;
  const shown = (part: Part): Part => {
    if (!isMedium(part)) return part;
    n += 1;
    const words = `${n} of ${length} beside this text`;
    return (
      part.type === "resource" ? { ...part, resource: { ...part.resource, blob: words } } : { ...part, data: words }
    ) as Part;
  };
  return { ...answer, content: answer.content.map(shown) };
}

/** A stored answer; whether it may be sent whole, with a text of up to `limit` characters; and its media, if those may be sent. */
export function bounded(stored: unknown, limit: number) {
  const content = asContent(stored);
  const { media, text } = sizeOf(content);
  const hasRoom = media <= MAX_MEDIA;
  return { content, isWhole: hasRoom && text <= limit, media: hasRoom ? mediaOf(content) : [] };
}

/** An answer without its media, if those have no more than `room` characters; these media; and how much room they take. */
export function apart(stored: unknown, room: number): { shown: unknown; media: Part[]; size: number } {
  const content = asContent(stored);
  const { media: size } = sizeOf(content);
  if (size === 0 || size > room) return { shown: stored, media: [], size: 0 };
  return { shown: withoutMedia(content), media: mediaOf(content), size };
}
