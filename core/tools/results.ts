/**
 * Fits the results of jobs into answers. The limit of an answer applies to the whole message: structured content, its copy as
 * text, and links. Results are sent unchanged if all of them fit. A result that does not fit is sent as a summary: its size, its
 * fields, its first part, and where the rest is.
 */
import type { Job } from "../author/job.ts";
import type { JobView, ResultSummary } from "../jobs/status.ts";
import { partsIn } from "../resonate/codec.ts";
import { isRecord } from "../resonate/json.ts";

/** The default limit of an answer in characters: common hosts do not show a model more than that. */
export const MAX_ANSWER = 50_000;

/** The most base64 of images, sounds and files in one answer of a wrapped server, in characters. */
export const MAX_MEDIA = 4_000_000;

/** The smallest limit that a tool may set, which leaves room for the summary of a result with the longest job name. */
export const MIN_ANSWER = 5_000;

/** The `_meta` key that tells hosts of a larger limit for a tool's answers. */
export const MAX_RESULT_SIZE = "anthropic/maxResultSizeChars";

/** How many characters of a result its summary has, unless the caller asks for more. */
export const FIRST_PART = 2_000;

/** The longest texts about a job (its error, its activity, its question), in characters. */
const MAX_TEXT = 2_000;
/** The same in an answer about many jobs. */
const SHORT_TEXT = 200;

const MAX_QUESTIONS = 20;

const MAX_FIELDS = 30;
const MAX_FIELD = 60;

/** Room for the characters of an answer besides its entries: braces, a note with a short name, additions of the protocol. */
const ENVELOPE_CHARACTERS = 1_000;
const SHORT_NAME_CHARACTERS = 140;

/** How many links an answer has at most, and the length of each in characters without the job's name, which occurs twice. */
const MAX_LINKS = 5;
const LINK_CHARACTERS = 150;

/** The part of results that a caller asks for. */
export interface Selection {
  /** `none`: no results; `summary`: summaries; `full`: as much of each result as fits into the answer. */
  result?: "none" | "summary" | "full" | undefined;
  /** Fields of the result, such as `daily.time`; for a list, fields of each item. All when left out. */
  fields?: readonly string[] | undefined;
  /** The position in the result's JSON text at which to begin, in characters. */
  offset?: number | undefined;
  /** The most characters of a part, for hosts that cut answers shorter than the server does. */
  limit?: number | undefined;
}

/** A job while an answer is made, with at most as much of its result as an answer may hold. */
export interface PartialView {
  view: JobView;
  /** `value`: the whole result, if it may be sent unchanged; `text`: the part that may be sent. */
  result?: { value?: unknown; text: string; characters: number; offset: number; fields?: Record<string, number> };
}

const limits = new WeakMap<Job, number>();

/** Raises the limit of answers about a job to that of one of its tools; the largest one applies. */
export function noteLimit(job: Job, limit: number): void {
  limits.set(job, Math.max(limits.get(job) ?? 0, limit));
}

export const limitOf = (job: Job): number => limits.get(job) ?? MAX_ANSWER;

/** The beginning of the URIs of results as resources. */
export const JOB_SCHEME = "job://";

/** The URI of a job's result as a resource. */
export const uriOf = (name: string): string => `${JOB_SCHEME}${encodeURIComponent(name)}`;

/** Reduces a job to the content that an answer of at most `maxCharacters` may hold. */
export function cutToLimit(jobView: JobView, selection: Selection, maxCharacters: number): PartialView {
  const { result: mode, fields = [], offset = 0 } = selection;
  const limit = limitIn(selection, maxCharacters);
  const { result, ...rest } = jobView;
  const view = withShortTexts(rest, MAX_TEXT);
  if (view.status !== "complete" || mode === "none") return { view };
  const parts = partsIn(result);
  if (parts) return { view, result: parts };
  const value = fields.length > 0 ? pick(result, fields) : result;
  const json = JSON.stringify(value) ?? "null";
  const begin = boundary(json, Math.min(offset, json.length));
  const isInline = begin === 0 && mode !== "summary" && json.length <= limit;
  const length = mode === "full" || selection.limit !== undefined ? limit : FIRST_PART;
  return {
    view,
    result: {
      ...(isInline && { value: value ?? null }),
      text: json.slice(begin, boundary(json, Math.min(begin + length, json.length))),
      characters: json.length,
      offset: begin,
      fields: sizesOf(value),
    },
  };
}

/**
 * A job whose result, or reason, was not read: `omitted` is its stored length in characters of base64. Its length as text is exact
 * for ASCII that is stored unencrypted, and otherwise too large.
 */
export function viewOfOmitted({ result: _, ...jobView }: JobView, omitted: number): PartialView {
  const view = withShortTexts(jobView, MAX_TEXT);
  if (view.status === "complete")
    return { view, result: { text: "", characters: Math.floor((omitted * 3) / 4), offset: 0 } };
  return { view: { ...view, error: "its reason is too long for an answer about several jobs" } };
}

/** How many characters of a result an answer of at most `maxCharacters` may hold; at least one pair of surrogates. */
export const limitIn = ({ limit }: Selection, maxCharacters: number): number =>
  Math.max(2, Math.min(limit ?? maxCharacters, maxCharacters));

/** How many characters a value adds to a message. `copies`: 2 for structured content and text, 1 for text only. */
export function costOf(value: unknown, copies: 1 | 2 = 2): number {
  const json = JSON.stringify(value) ?? "";
  return JSON.stringify(json).length + (copies === 2 ? json.length : 0);
}

interface ArrangedViews {
  views: JobView[];
  /** How many jobs at the end of the list did not fit. */
  leftOut: number;
}

/** Fits jobs into `limit` characters, of which `usedCharacters` are already used. */
export function arrange(
  jobs: readonly PartialView[],
  limit: number,
  { usedCharacters = 0, copies = 2 as 1 | 2 } = {},
): ArrangedViews {
  const complete = completeViews(jobs, limit - ENVELOPE_CHARACTERS - usedCharacters, copies);
  if (complete) return { views: complete, leftOut: 0 };
  const names = jobs.filter(({ result }) => result).map(({ view }) => view.job_name);
  const links = names.map((name) => LINK_CHARACTERS + 2 * uriOf(name).length).sort((a, b) => b - a);
  // Links, and a note that names one of the jobs, accompany structured content only.
  const noteCharacters = Math.max(0, ...names.map((name) => costOf(name) - SHORT_NAME_CHARACTERS));
  const extraCharacters =
    copies === 2 ? links.slice(0, MAX_LINKS).reduce((sum, link) => sum + link, noteCharacters) : 0;
  const room = limit - ENVELOPE_CHARACTERS - usedCharacters - extraCharacters;
  const full = jobs.map((job) => fullEntry(job, room, copies));
  const isTight = full.reduce((sum, { cost }) => sum + cost, 0) > room;
  const entries = isTight ? jobs.map((job) => shortEntry(job, copies)) : full;
  let left = room;
  const fitting = entries.filter(({ cost }) => {
    left = left < cost ? -1 : left - cost;
    return left >= 0;
  });
  left = Math.max(left, 0);
  // Small results are sent whole, the smallest first; large ones share the remaining room.
  const bySize = [...fitting].sort((a, b) => (a.job.result?.characters ?? 0) - (b.job.result?.characters ?? 0));
  for (const entry of bySize) {
    const { value } = entry.job.result ?? {};
    if (value === undefined) continue;
    const { summary, ...rest } = entry.view;
    const view = { ...rest, result: value };
    const cost = costOf(view, copies) + 1;
    if (cost - entry.cost > left) continue;
    left -= cost - entry.cost;
    Object.assign(entry, { view, cost });
  }
  const cut = fitting.filter(({ view }) => view.summary !== undefined);
  for (const [i, { view, job }] of cut.entries()) {
    const { summary } = view;
    if (!summary || !job.result) continue;
    const part = partOf(job.result.text, Math.floor(left / (cut.length - i)), copies);
    left -= costOf(part, copies);
    const end = job.result.offset + part.length;
    view.summary = { ...summary, part, ...(end < job.result.characters && { next_offset: end }) };
  }
  return { views: fitting.map(({ view }) => view), leftOut: jobs.length - fitting.length };
}

/** All jobs with their whole results; undefined if they need more than `maxCharacters` characters. */
function completeViews(jobs: readonly PartialView[], maxCharacters: number, copies: 1 | 2): JobView[] | undefined {
  const views: JobView[] = [];
  let left = maxCharacters;
  for (const { view, result } of jobs) {
    if (result && (result.value === undefined || result.characters * copies > left)) return undefined;
    const complete = result ? { ...view, result: result.value } : view;
    left -= costOf(complete, copies) + 1;
    if (left < 0) return undefined;
    views.push(complete);
  }
  return views;
}

interface ArrangedEntry {
  job: PartialView;
  view: JobView;
  cost: number;
}

/** A job with an empty summary in place of its result, and unshortened texts. */
function fullEntry(job: PartialView, maxCharacters: number, copies: 1 | 2): ArrangedEntry {
  const view = withSummary(job, job.view, true);
  const cost = costOfEntry(view, copies);
  return cost <= maxCharacters ? { job, view, cost } : shortEntry(job, copies);
}

function shortEntry(job: PartialView, copies: 1 | 2): ArrangedEntry {
  const { started_at, finished_at, ...texts } = job.view;
  const view = withSummary(job, withShortTexts(texts, SHORT_TEXT), false);
  return { job, view, cost: costOfEntry(view, copies) };
}

function withSummary({ result }: PartialView, view: JobView, isLong: boolean): JobView {
  if (!result) return { ...view };
  const { characters, offset, fields } = result;
  const summary = { characters, ...(isLong && fields && { fields }), offset, part: "", uri: uriOf(view.job_name) };
  return { ...view, summary };
}

function costOfEntry(view: JobView, copies: 1 | 2): number {
  const { summary } = view;
  // Leaves room for `next_offset`, which is known later.
  return costOf(view, copies) + (summary ? 50 : 1);
}

/** The longest beginning of `text` that adds at most `budget` characters to the message. */
function partOf(text: string, budget: number, copies: 1 | 2): string {
  let part = text.slice(0, boundary(text, Math.min(text.length, Math.max(budget, 0))));
  for (let cost = costOf(part, copies); part !== "" && cost > budget; cost = costOf(part, copies)) {
    part = part.slice(0, boundary(part, Math.floor(part.length * Math.min(0.98, budget / cost))));
  }
  return part;
}

/** How to get the rest of an incomplete answer; undefined if it is complete. */
export function noteOn({ views, leftOut }: ArrangedViews): string | undefined {
  const cut = views.find(({ summary }) => summary?.next_offset !== undefined || summary?.offset);
  const lines = [
    ...(leftOut > 0 ? [`The last ${leftOut} names were left out, for the size of the answer: ask for fewer.`] : []),
    ...(cut ? [readOnAdvice(cut.job_name)] : []),
  ];
  return lines.length > 0 ? lines.join(" ") : undefined;
}

const readOnAdvice = (name: string): string =>
  `A result that is too large for the answer is included in part, as JSON text. The rest: probe_status(job_names: ["${name}"], result: "full", offset: its next_offset), with limit where your host cuts answers; some of it: with fields; or read the resource at its uri.`;

export interface ResourceLink {
  type: "resource_link";
  uri: string;
  name: string;
  mimeType: string;
  size: number;
}

/** Links to the first of the results that an answer summarizes. */
export function linksTo(summaries: readonly (ResultSummary | undefined)[]): ResourceLink[] {
  const present = summaries.filter((summary) => summary !== undefined);
  return present.slice(0, MAX_LINKS).map(({ uri, characters }) => ({
    type: "resource_link",
    uri,
    name: decodeURIComponent(uri.slice(JOB_SCHEME.length)),
    mimeType: "application/json",
    size: characters,
  }));
}

/** The fields of a value that `paths` name. Values that have none of them are left out or empty. */
export const pick = (value: unknown, paths: readonly string[]): unknown =>
  picker(paths.map((path) => path.split(".")))(value);

/** Prepares the paths once for all items of a list, as there may be many paths and items. */
function picker(paths: readonly string[][]): (value: unknown) => unknown {
  if (paths.some((path) => path.length === 0)) return (value) => value;
  const below = Object.entries(Object.groupBy(paths, ([key]) => key as string)).map(
    ([key, its = []]) => [key, picker(its.map((path) => path.slice(1)))] as const,
  );
  const pickIn = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(pickIn);
    if (!isRecord(value)) return undefined;
    const entries = below.flatMap(([key, pickFrom]) =>
      Object.hasOwn(value, key) ? [[key, pickFrom(value[key])]] : [],
    );
    return Object.fromEntries(entries);
  };
  return pickIn;
}

/** The length of each field of an object as JSON; empty for other values. */
function sizesOf(value: unknown): Record<string, number> {
  if (!isRecord(value)) return {};
  const sizes = Object.entries(value).slice(0, MAX_FIELDS);
  return Object.fromEntries(
    sizes.map(([key, field]) => [key.slice(0, MAX_FIELD), (JSON.stringify(field) ?? "").length]),
  );
}

/** Shortens the texts of a view for an answer about many jobs. */
export const withShortestTexts = <View extends Pick<JobView, "error" | "doing" | "waiting_for">>(view: View): View =>
  withShortTexts(view, SHORT_TEXT);

function withShortTexts<View extends Pick<JobView, "error" | "doing" | "waiting_for">>(
  view: View,
  longest: number,
): View {
  const { error, doing, waiting_for } = view;
  const questions = waiting_for
    ?.slice(0, longest < MAX_TEXT ? 1 : MAX_QUESTIONS)
    .map(({ answer_schema, ...question }) => {
      const isShort = JSON.stringify(answer_schema ?? "").length <= longest;
      const texts = {
        question: shortenText(question.question, SHORT_TEXT),
        message: shortenText(question.message, longest / 2),
      };
      return { ...question, ...texts, ...(answer_schema && isShort && { answer_schema }) };
    });
  return {
    ...view,
    ...(error !== undefined && { error: shortenText(error, longest) }),
    ...(doing !== undefined && { doing: shortenText(doing, longest) }),
    ...(questions && { waiting_for: questions }),
  };
}

function shortenText(text: string, longest: number): string {
  if (text.length <= longest) return text;
  return `${text.slice(0, boundary(text, longest))}… (${text.length} characters)`;
}

/** The position `at`, or the one before it if `at` would split a surrogate pair. */
export function boundary(text: string, at: number): number {
  const code = at > 0 && at < text.length ? text.charCodeAt(at) : 0;
  return code >= 0xdc00 && code <= 0xdfff ? at - 1 : at;
}

/** Whether a client's revision of the protocol has resource links in results, which came with 2025-06-18. Revisions are dates. */
export function knowsLinks(headers: Headers): boolean {
  const revision = headers.get("mcp-protocol-version") ?? "";
  return /^\d{4}-\d{2}-\d{2}$/.test(revision) && revision >= "2025-06-18";
}
