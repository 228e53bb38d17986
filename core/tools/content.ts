/** Answers of wrapped servers as content, without the fields that only this server may set. */
import { FILES_KEY } from "../author/file.ts";
import type { Job } from "../author/job.ts";
import { viewOfRange, withMedia } from "./byte-range.ts";
import { type CallToolResult, FILES_META, OWN_KEY_PATTERN, ProtocolError } from "./mcp.ts";
import { JOB_SCHEME, MAX_MEDIA } from "./results.ts";

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

/** The keys of `_meta` by which a server names an app of its own, for the various kinds of hosts. */
const APP_KEY_PATTERN = /^(ui|ui\/.*|openai\/(outputTemplate|widget.*))$/;

const APP_SCHEME = "ui://";

export const isApp = (uri: string): boolean => uri.toLowerCase().startsWith(APP_SCHEME);

/** Whether the operator allows the apps of a server: hosts take them for apps of this server. */
export type Apps = Pick<Job, "apps">;

/**
 * A wrapped server's value without the keys of its `_meta` that only this server may set, because clients would trust them, and
 * without those of apps, unless they are allowed.
 */
export function withoutOurs<Value>(value: Value, { apps }: Apps): Value {
  const { _meta, ...rest } = Object(value);
  const entries = typeof _meta === "object" ? Object.entries(_meta ?? {}) : [];
  const allowed = entries.filter(([key]) => (APP_KEY_PATTERN.test(key) ? apps : !OWN_KEY_PATTERN.test(key)));
  if (allowed.length === entries.length) return value;
  return allowed.length > 0 ? { ...value, _meta: Object.fromEntries(allowed) } : rest;
}

/** The answer without fields that only this server may set. */
function asContent(stored: unknown, allowed: Apps): CallToolResult {
  const { resultType: _, [FILES_KEY]: files, ...answer } = withoutOurs({ ...Object(stored) }, allowed);
  const content = Array.isArray(answer.content) ? answer.content.map((part: unknown) => asPart(part, allowed)) : [];
  return { ...answer, content, ...(files !== undefined && { _meta: { ...answer._meta, [FILES_META]: files } }) };
}

/** Whether only this server may use an address. */
export function isOurs(uri: unknown, { apps }: Apps): boolean {
  const text = String(uri);
  return text.toLowerCase().startsWith(JOB_SCHEME) || (!apps && isApp(text));
}

/** A part of an answer or a prompt. A part without a type, or with an address that only this server may use, is shown as text. */
export function asPart(part: unknown, allowed: Apps): Part {
  const { type, uri, resource } = Object(part);
  if (typeof type !== "string" || isOurs(uri, allowed) || isOurs(resource?.uri, allowed))
    return { type: "text", text: JSON.stringify(part) };
  const shown = withoutOurs(part as Part, allowed);
  const inner = withoutOurs(resource, allowed);
  return inner === resource ? shown : ({ ...shown, resource: inner } as Part);
}

/** The base64 of an image, a sound or a file; empty for any other part. */
export function base64Of(part: unknown): string {
  const { type, data, resource } = Object(part);
  const base64 = type === "resource" ? resource?.blob : type === "image" || type === "audio" ? data : "";
  return typeof base64 === "string" ? base64 : "";
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
 * A stored answer as content. `isComplete`: whether all of it may be sent, with up to `limit` characters of text. `media`: its
 * media if they may be sent, otherwise none.
 */
export function withinLimit(stored: unknown, limit: number, allowed: Apps) {
  const content = asContent(stored, allowed);
  const { media, text } = sizeOf(content);
  const hasRoom = media <= MAX_MEDIA;
  return { content, isComplete: hasRoom && text <= limit, media: hasRoom ? mediaOf(content) : [] };
}

/** Separates an answer from its media if these have at most `maxMedia` characters; `size` is how many they have. */
export function separateMedia(
  stored: unknown,
  maxMedia: number,
  allowed: Apps,
): { answer: unknown; media: Part[]; size: number } {
  const content = asContent(stored, allowed);
  const { media: size } = sizeOf(content);
  if (size === 0 || size > maxMedia) return { answer: stored, media: [], size: 0 };
  return { answer: withoutMedia(content), media: mediaOf(content), size };
}

/** What reads the answers of wrapped servers. */
export const answerReader = {
  separateMedia,
  withinLimit,
  protocolErrorIn,
  viewOfRange,
  withMedia,
};

export type AnswerReader = typeof answerReader;
