/** Turns a wrapped server's answer, or the lack of one, into a job's result or failure reason. */
import { getExtension } from "hono/utils/mime";
import { MINUTE, NonRetryableError, SECOND, type Step } from "../../../core/author/context.ts";
import { FILES, type FileReference, MAX_FILE_NAME } from "../../../core/author/file.ts";
import { isFinal } from "../../../core/author/values.ts";
import { backoff, pause } from "../../../core/resonate/pacing/backoff.ts";
import { PARTS } from "../../../core/resonate/parts.ts";
import { keepInParts } from "../../../core/tools/chunks.ts";
import { base64Of, RPC_FAILURE, type RpcFailure, sizeOf } from "../../../core/tools/content.ts";
import { type CallToolResult, SERVER_INFO } from "../../../core/tools/mcp.ts";
import { MAX_MEDIA } from "../../../core/tools/results.ts";
import { LOGS, type LogMessage } from "../../behind/logs.ts";
import { NOT_DONE } from "../../call-job.ts";
import type { WrapOptions } from "../../wrap-options.ts";
import { AnswerLost, CallRefused, NotSent, OutcomeUnknown, type RpcError, Unsendable } from "../connection/errors.ts";
import type { JsonObject } from "../connection/open-request.ts";
import { MAX_KEPT_ANSWER, tooLong } from "../host/host-config.ts";
import { isTooDeep, readable } from "./readable.ts";

/** The largest answer that is stored in one promise, in bytes of JSON; the store takes 2 MiB with its record. */
const MAX_WHOLE = 900_000;
/** How many of an answer's images, sounds and files become a file each. Those beyond share files. */
const MOST_FILES = 100;
/** How long a file that several share is, in characters of JSON: `resources/read` takes a little more. */
const SHARED_FILE = 900_000;
/** How long a store of files that fails is tried again, in milliseconds. */
const PATIENCE = 2 * MINUTE;
/** The longest message of a protocol error, or of progress, in characters. */
export const MAX_MESSAGE = 20_000;
/** The largest data of a protocol error, in characters of JSON. */
const MAX_DATA = 100_000;

/** The server's answer as the tool's answer: without the fields that only this side may write, or that concern the connection. */
export function toolAnswer(result: JsonObject): JsonObject {
  const { resultType: _, _meta, [PARTS]: __, [RPC_FAILURE]: ___, [FILES]: ____, ...rest } = result;
  // The description of the server concerns only its connection.
  const { [SERVER_INFO]: _____, ...meta } = { ...(_meta as JsonObject | undefined) };
  return { ...rest, ...(Object.keys(meta).length > 0 && { _meta: meta }) };
}

/**
 * The answer as the job stores it: in parts, if it is too large for one promise. `server`: the name of the server whose tool has
 * answered; undefined for the answer to any other request.
 */
export async function storedAnswer(
  step: Step,
  result: unknown,
  server: string | undefined,
  logs: readonly LogMessage[] = [],
): Promise<JsonObject> {
  const given = toolAnswer(server === undefined ? (result as JsonObject) : readable(result, server));
  const answer = server === undefined ? given : await withFiles(step, given);
  const json = JSON.stringify(answer);
  if (json.length > MAX_KEPT_ANSWER) return protocolError(tooLong(MAX_KEPT_ANSWER));
  const withLogs = (stored: JsonObject): JsonObject =>
    logs.length === 0 ? stored : { ...stored, _meta: { ...(stored._meta as JsonObject | undefined), [LOGS]: logs } };
  if (json.length * 3 <= MAX_WHOLE || Buffer.byteLength(json) <= MAX_WHOLE) return withLogs(answer);
  const media = server === undefined ? 0 : sizeOf(answer as CallToolResult).media;
  return withLogs({
    ...(await keepInParts(step, answer, media)),
    ...(answer.isError === true && { isError: true }),
    // The step's value has to name the files: others are removed.
    ...(answer[FILES] !== undefined && { [FILES]: answer[FILES] }),
  });
}

/** A protocol error, cut to the limits above. */
export function told({ code, message, data }: RpcError): RpcFailure {
  const isKept = data !== undefined && !isTooDeep(data) && JSON.stringify(data).length <= MAX_DATA;
  return { code, message: message.slice(0, MAX_MESSAGE), ...(isKept && { data }) };
}

/** A protocol error as the job stores it: as a result for clients that collect it, and as the error that the call itself gets. */
export function protocolError({ code, message, data }: RpcFailure): JsonObject {
  const failure: RpcFailure = { code, message, ...(data !== undefined && { data }) };
  return {
    isError: true,
    content: [{ type: "text", text: `MCP error ${code}: ${message}` }],
    [RPC_FAILURE]: failure,
  };
}

/** The failure reason of a call that was sent at the time `at` and may have had its effect. */
export function unknownEffect({ name }: WrapOptions, at: string, why: string): NonRetryableError {
  return new NonRetryableError(
    `The call was sent to ${name} at ${at}, and ${why}: whether it had its effect is unknown. It is not sent again, because nothing says that a repeat is safe. Check what has become of it; to send it again, make another call.`,
  );
}

/** Why a call has failed, as the job's reason or as an error to retry. `at`: when a non-repeatable call was sent. */
export function failure(error: unknown, options: WrapOptions, at: string | undefined): unknown {
  const { name } = options;
  if (error instanceof CallRefused) {
    const reason = `${NOT_DONE}: ${name} refused the call: ${error.message}`;
    return at === undefined && error.isTemporary ? new Error(reason) : new NonRetryableError(reason);
  }
  if (error instanceof AnswerLost) {
    return at === undefined ? new Error(`${name}: ${error.message}`) : unknownEffect(options, at, error.message);
  }
  if (error instanceof OutcomeUnknown && at !== undefined) return unknownEffect(options, at, error.message);
  return error;
}

/** If the error means that the request was not sent, adds to it that nothing was done. */
export function explained(error: unknown): unknown {
  if (!(error instanceof NotSent)) return error;
  const words = `${NOT_DONE}: ${error.message}`;
  return error instanceof Unsendable ? new NonRetryableError(words) : new Error(words, { cause: error });
}

/**
 * The answer with its largest media stored as files, until the rest fits. If a file cannot be stored, the answer is unchanged or,
 * if it is too long to keep, an error: the call is not made again, as it may have had an effect.
 */
async function withFiles(step: Step, answer: JsonObject): Promise<JsonObject> {
  const content: (JsonObject | undefined)[] = [...((answer.content as JsonObject[] | undefined) ?? [])];
  const media = content.map((part, i) => ({ i, part, data: base64Of(part) })).filter(({ data }) => data !== "");
  let size = media.reduce((sum, { data }) => sum + data.length, 0);
  const largest = media.sort((a, b) => b.data.length - a.data.length);
  const leaving = largest.filter(({ data }) => {
    const isLeaving = size > MAX_MEDIA;
    if (isLeaving) size -= data.length;
    return isLeaving;
  });
  if (leaving.length === 0) return answer;
  const own = leaving.slice(0, MOST_FILES).map(({ i, part = {}, data }) => {
    const { mimeType, uri } = { ...(part.resource as JsonObject | undefined), ...part } as {
      mimeType?: string;
      uri?: string;
    };
    return { i, name: nameOf(part.type, i, uri, mimeType), mimeType, data: Buffer.from(data, "base64"), about: "" };
  });
  const texts: string[][] = [];
  let room = 0;
  for (const { i, part } of leaving.slice(MOST_FILES)) {
    const text = `"${i}":${JSON.stringify(part)}`;
    if (text.length > room) texts.push([]);
    room = (text.length > room ? SHARED_FILE : room) - text.length;
    texts.at(-1)?.push(text);
    content[i] = undefined;
  }
  const shared = texts.map((parts, n) => {
    const about = ` and has ${parts.length} more images, sounds and files, by their index in the server's content, from 0`;
    const data = Buffer.from(`{${parts.join(",")}}`);
    return { i: content.length + n, name: `more-${n + 1}.json`, mimeType: "application/json", data, about };
  });
  const files: FileReference[] = [];
  // Those that hold most come first: lists of an answer's files are short.
  for (const { i, name, mimeType, data, about } of [...shared, ...own]) {
    const file = await storedFile(step, () => step.file(name, data, mimeType === undefined ? {} : { mimeType }));
    if ("failed" in file) {
      if (JSON.stringify(answer).length <= MAX_KEPT_ANSWER) return answer;
      const { code, message } = tooLong(MAX_KEPT_ANSWER);
      return protocolError({ code, message: `${message} ${name} could not be stored as a file: ${file.failed}` });
    }
    files.push(file);
    const text = `${file.name} (${file.mimeType}, ${file.size} bytes) is kept as ${file.uri}${about}`;
    content[i] = { type: "text", text };
  }
  return { ...answer, content: content.filter(Boolean), [FILES]: files };
}

/** Stores a file; resolves with the reason if that fails for good, or for too long. */
async function storedFile(
  step: Step,
  store: () => Promise<FileReference>,
): Promise<FileReference | { failed: string }> {
  const begun = Date.now();
  for (let n = 1; ; n++) {
    try {
      return await store();
    } catch (error) {
      step.signal.throwIfAborted();
      const { message } = error as Error;
      step.log.warn("file not stored", { attempt: n, reason: message });
      if (isFinal(error) || Date.now() - begun > PATIENCE) return { failed: message };
    }
    await pause(backoff(n, { base: SECOND, max: 20 * SECOND }), step.signal);
  }
}

/** A file name: the last part of the resource's address, or else the content's kind, number and extension. */
function nameOf(type: unknown, i: number, uri: string | undefined, mimeType = ""): string {
  const last = uri?.split(/[?#]/)[0]?.split("/").at(-1) ?? "";
  const named = last
    .replace(/[\p{Cc}\\]/gu, "")
    .slice(-MAX_FILE_NAME)
    .toWellFormed();
  const extension = getExtension(mimeType);
  return named || `${type}-${i + 1}${extension === undefined ? "" : `.${extension}`}`;
}
