/** Turns a wrapped server's answer, or the lack of one, into a job's result or failure reason. */

import { INTERNAL_ERROR } from "@modelcontextprotocol/client";
import { FILES_KEY, NonRetryableError, type Step } from "../../../core/author/index.ts";
import { PARTS_KEY, unheldNumberIn, unheldReason } from "../../../core/resonate/index.ts";
import {
  type CallToolResult,
  RPC_FAILURE,
  type RpcFailure,
  SERVER_INFO,
  sizeOf,
  storeInParts,
} from "../../../core/tools/index.ts";
import { NothingDone, NothingDoneFinally } from "../../call-job.ts";
import { LOGS_META, type LogMessage } from "../../upstream/logs.ts";
import type { WrapOptions } from "../../wrap-options.ts";
import { AnswerLost, CallRefused, NotSent, OutcomeUnknown, type RpcError, Unsendable } from "../host/errors.ts";
import { MAX_STORED_ANSWER_CHARACTERS, tooLongError } from "../host/host-config.ts";
import type { JsonObject } from "../host/open-request.ts";
import { tidyResult } from "../protocol-values.ts";
import { FileNotStored, withFiles } from "./media-files.ts";
import { readableAnswer } from "./readable-answer.ts";

/** The maximum size of an answer that is stored in one promise, in bytes of JSON; the store accepts 2 MiB with its record. */
const MAX_PROMISE_BYTES = 900_000;
/** The maximum length of the message of a protocol error, or of progress. */
export const MAX_MESSAGE_CHARACTERS = 20_000;
/** The maximum length of the data of a protocol error, in characters of JSON. */
const MAX_ERROR_DATA_CHARACTERS = 100_000;

/** The server's answer as the tool's answer: without the fields that only this side may write, or that concern the connection. */
export function toolAnswer(result: JsonObject): JsonObject {
  const { resultType: _, _meta, [PARTS_KEY]: __, [RPC_FAILURE]: ___, [FILES_KEY]: ____, ...rest } = result;
  // The description of the server concerns only its connection.
  const { [SERVER_INFO]: _____, ...meta } = { ...(_meta as JsonObject | undefined) };
  return { ...rest, ...(Object.keys(meta).length > 0 && { _meta: meta }) };
}

/**
 * The answer as the job stores it: in parts, if it is too large for one promise. `server`: the name of the server whose tool has
 * answered; undefined for the answer to any other request.
 */
export async function storeAnswer(
  step: Step,
  result: unknown,
  server: string | undefined,
  logs: readonly LogMessage[] = [],
): Promise<JsonObject> {
  const unheld = server === undefined ? unheldNumberIn(result, true) : undefined;
  if (unheld)
    return protocolError({
      code: INTERNAL_ERROR,
      message: `it answered with ${unheldReason(unheld)}, at ${unheld.path}`,
    });
  const fullAnswer = toolAnswer(
    server === undefined ? (tidyResult(result) as JsonObject) : readableAnswer(result, server),
  );
  const answer = server === undefined ? fullAnswer : await withFilesOrError(step, fullAnswer);
  const json = JSON.stringify(answer);
  if (json.length > MAX_STORED_ANSWER_CHARACTERS) return protocolError(tooLongError(MAX_STORED_ANSWER_CHARACTERS));
  const withLogs = (answerToStore: JsonObject): JsonObject =>
    logs.length === 0
      ? answerToStore
      : { ...answerToStore, _meta: { ...(answerToStore._meta as JsonObject | undefined), [LOGS_META]: logs } };
  if (json.length * 3 <= MAX_PROMISE_BYTES || Buffer.byteLength(json) <= MAX_PROMISE_BYTES) return withLogs(answer);
  const media = server === undefined ? 0 : sizeOf(answer as CallToolResult).media;
  return withLogs({
    ...(await storeInParts(step, answer, media)),
    ...(answer.isError === true && { isError: true }),
    // The step's value must name the files: others are removed.
    ...(answer[FILES_KEY] !== undefined && { [FILES_KEY]: answer[FILES_KEY] }),
  });
}

/** A protocol error, cut to the limits above. */
export function limitedError({ code, message, data }: RpcError): RpcFailure {
  const isKept =
    data !== undefined && !unheldNumberIn(data, true) && JSON.stringify(data).length <= MAX_ERROR_DATA_CHARACTERS;
  return { code, message: message.slice(0, MAX_MESSAGE_CHARACTERS), ...(isKept && { data }) };
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
    const why = `${name} refused the call: ${error.message}`;
    return at === undefined && error.why === "busy" ? new NothingDone(why) : new NothingDoneFinally(why);
  }
  if (error instanceof AnswerLost) {
    return at === undefined ? new Error(`${name}: ${error.message}`) : unknownEffect(options, at, error.message);
  }
  if (error instanceof OutcomeUnknown && at !== undefined) return unknownEffect(options, at, error.message);
  return error;
}

/** If the error means that the request was not sent, adds to it that nothing was done. */
export function explain(error: unknown): unknown {
  if (!(error instanceof NotSent)) return error;
  const { message } = error;
  return error instanceof Unsendable ? new NothingDoneFinally(message) : new NothingDone(message, { cause: error });
}

/**
 * The answer with its largest media stored as files. If a file cannot be stored, the answer is unchanged or, if it is too long to
 * store, an error: the call is not repeated, as it may have had an effect.
 */
async function withFilesOrError(step: Step, answer: JsonObject): Promise<JsonObject> {
  try {
    return await withFiles(step, answer);
  } catch (error) {
    if (!(error instanceof FileNotStored)) throw error;
    if (JSON.stringify(answer).length <= MAX_STORED_ANSWER_CHARACTERS) return answer;
    const { code, message } = tooLongError(MAX_STORED_ANSWER_CHARACTERS);
    return protocolError({ code, message: `${message} ${error.message}` });
  }
}
