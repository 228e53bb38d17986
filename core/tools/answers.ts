/** The code that reads the answers of wrapped servers, which only an edge in front of such servers has. */
import type { Job } from "../definitions/job.ts";
import { viewOf } from "../jobs/status.ts";
import type * as Content from "./content.ts";

let content: typeof Content | undefined;

export function readAnswersBy(code: typeof Content): void {
  content = code;
}

/** What reads the results of a job; undefined for a job whose results are no answers of a wrapped server. */
export const answersOf = ({ answers }: Pick<Job, "answers">): typeof Content | undefined =>
  answers ? content : undefined;

/** The view of a job, with the range of its result that is asked for where that is kept in chunks. */
export const viewOfRange: typeof Content.viewOfRange = async (store, promise, ...selected) =>
  answersOf(promise.job)?.viewOfRange(store, promise, ...selected) ?? viewOf(promise.name, promise);

/** The promise with its whole result, where that is kept in chunks for the images, sounds and files in it. */
export const withMedia: typeof Content.withMedia = async (store, promise, signal) =>
  answersOf(promise.job)?.withMedia(store, promise, signal) ?? promise;
