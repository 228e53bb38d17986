/** Answers of wrapped servers as content, without the fields that only this server may set. */
import { FILES } from "../definitions/file.ts";
import { type CallToolResult, FILES_META, OURS, ProtocolError } from "./mcp.ts";
import { JOB_SCHEME, MAX_MEDIA } from "./results.ts";

export { viewOfRange, withMedia } from "./byte-range.ts";

/** The key of the protocol error that a stored answer stands for. */
export const RPC_FAILURE = "durable-mcp:error";

/** A protocol error in JSON-RPC's form. */
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

/** The answer without fields that only this server may set: clients would trust them as this server's. */
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

/** Shows as text a part without a type, and a part with a `job://` link, which only this server may make. */
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

/** The size of an answer in characters: its base64, and the rest. Text and its copy as structured content count once. */
export function sizeOf({ content, structuredContent, ...rest }: CallToolResult): { media: number; text: number } {
  const characters = (value: unknown) => JSON.stringify(value)?.length ?? 0;
  const media = content.reduce((sum, part) => sum + base64Of(part).length, 0);
  const text = Math.max(characters(content) - media, characters(structuredContent)) + characters(rest);
  return { media, text };
}

/** The answer with its media replaced by words, for a message that has the media beside this text. */
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

/**
 * A stored answer as content. `isWhole`: whether all of it may be sent, with up to `limit` characters of text. `media`: its
 * media if they may be sent, otherwise none.
 */
export function bounded(stored: unknown, limit: number) {
  const content = asContent(stored);
  const { media, text } = sizeOf(content);
  const hasRoom = media <= MAX_MEDIA;
  return { content, isWhole: hasRoom && text <= limit, media: hasRoom ? mediaOf(content) : [] };
}

/** Separates an answer from its media if these have at most `room` characters; `size` is how many they have. */
export function apart(stored: unknown, room: number): { shown: unknown; media: Part[]; size: number } {
  const content = asContent(stored);
  const { media: size } = sizeOf(content);
  if (size === 0 || size > room) return { shown: stored, media: [], size: 0 };
  return { shown: withoutMedia(content), media: mediaOf(content), size };
}
