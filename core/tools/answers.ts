/** Access to the code that reads the answers of wrapped servers. Only an edge in front of such servers loads it. */
import type { Job } from "../author/job.ts";
import { viewOf } from "../jobs/status.ts";
import type { AnswerReader } from "./content.ts";

let reader: AnswerReader | undefined;

export function readAnswersBy(code: AnswerReader): void {
  reader = code;
}

/** The code that reads a job's results; undefined if they are not answers of a wrapped server. */
export const answersOf = ({ returnsToolResult }: Pick<Job, "returnsToolResult">): AnswerReader | undefined =>
  returnsToolResult ? reader : undefined;

/** The view of a job. If its result is stored in chunks, the view has the requested range of it. */
export const viewOfRange: AnswerReader["viewOfRange"] = async (store, promise, ...selected) =>
  answersOf(promise.job)?.viewOfRange(store, promise, ...selected) ?? viewOf(promise.name, promise);

/** The promise, with its whole result if that is stored in chunks because of its images, sounds and files. */
export const withMedia: AnswerReader["withMedia"] = async (store, promise, signal) =>
  answersOf(promise.job)?.withMedia(store, promise, signal) ?? promise;
