/**
 * The grammar of promise ids, which no other module knows.
 *
 *     [namespace][caller key]name[~generation]      a job; a shared job has no caller key
 *     <job>:<kind><rest>                            a child of a job: a journal entry, a claim, a wake-up promise
 *     [namespace][caller key]<kind>:<rest>          what a deployment or a caller counts; each is its own origin
 *
 * A namespace holds no `:`, and a job's name holds neither `:` nor `~`.
 */

/** Separates a job's id from the rest of a child's id. */
export const CHILD = ":";

/** Separates the parts of an id that is its own origin and no job's. */
const OWN = ":";

/** Separates a job's name from its generation. */
export const GENERATION = "~";

const successor = (mark: string): string => String.fromCharCode(mark.charCodeAt(0) + 1);

/** The ids that begin with `prefix`: from the first of the pair up to the second, which is not one of them. */
export const idsFrom = (prefix: string): [string, string] => [
  prefix,
  prefix.slice(0, -1) + successor(prefix.slice(-1)),
];

// Jobs.

/** Matches a character that a job's name must not hold: a separator, or one that does not fit on a line. */
const RESERVED = `[${CHILD}${GENERATION}\\p{Cc}\\p{Cs}\\p{Zl}\\p{Zp}]`;
const HOLDS_RESERVED = new RegExp(RESERVED, "u");

const hex = (character: string): string => character.charCodeAt(0).toString(16).toUpperCase();

/** Reserved characters, a space at the end, and each `%` that could be taken for an escape. */
const TO_ESCAPE = new RegExp(
  `${RESERVED}|\\s$|%(?=${hex(CHILD)}|${hex(GENERATION)}|25|[01][0-9A-F]|7F|[89][0-9A-F]|[2A]0$|u[0-9A-F]{4})`,
  "giu",
);

/** Whether a text, without a generation, may be a job's name. */
export const mayBeName = (text: string): boolean => !HOLDS_RESERVED.test(text);

/** Makes a text one that may be part of a job's name. Different texts stay different. */
export function escapeId(text: string): string {
  return text.replace(TO_ESCAPE, (character) => {
    const code = hex(character);
    return code.length > 2 ? `%u${code.padStart(4, "0")}` : `%${code.padStart(2, "0")}`;
  });
}

const NUMBERED = new RegExp(`^(.*)${GENERATION}([1-9]\\d{0,8})$`, "s");

/** `timer_tea~3` is the third generation of `timer_tea`; the first carries no suffix. */
export function splitGeneration(name: string): { base: string; generation: number } {
  const match = NUMBERED.exec(name);
  if (!match?.[1] || match[2] === "1") return { base: name, generation: 1 };
  return { base: match[1], generation: Number(match[2]) };
}

export function withGeneration(base: string, generation: number): string {
  return generation === 1 ? base : `${base}${GENERATION}${generation}`;
}

/** Matches a text that may stand before all ids of a deployment. */
export const NAMESPACE = new RegExp(`^[^${CHILD}${GENERATION}\\p{Cc}]*$`, "u");

/** The id of the job that an id belongs to: the id itself, or that of the job whose child it is. */
export const rootOf = (id: string): string => id.split(CHILD, 1)[0] ?? "";

/** Whether an id is a job's, and not a child's or a counter's. */
export const isRoot = (id: string): boolean => !id.includes(CHILD);

export const isChildOf = (job: string, id: string): boolean => id.startsWith(job + CHILD);

export const localId = (id: string, namespace: string): string =>
  id.startsWith(namespace) ? id.slice(namespace.length) : id;

// Callers.

/** How many characters of base64url tell callers apart, 6 bits each: nobody finds an identity with another caller's key. */
export const CALLER_HASH = 16;

/** What stands before the name of a caller's own job. */
export const callerKey = (hash: string): string => `c${hash}.`;

const IS_HASH = new RegExp(`^[\\w-]{${CALLER_HASH}}$`);
const KEY = new RegExp(`^c[\\w-]{${CALLER_HASH}}\\.`);

export const isCallerHash = (text: string): boolean => IS_HASH.test(text);

/** Splits an id without its namespace into the key of the caller that it belongs to, empty without one, and the name. */
export function splitKey(id: string): { key: string; name: string } {
  const key = KEY.exec(id)?.[0] ?? "";
  return { key, name: id.slice(key.length) };
}

// Children of a job.

/** Within one of the job's runs another separator follows: `job:f2.e1`. */
const child = (job: string, kind: string, rest: string | number): string =>
  `${job}${isRoot(job) ? CHILD : "."}${kind}${rest}`;

/** The `n`th run of a job, counted from 1, whose records are its children: the first is the job itself. */
export const runId = (job: string, n: number): string => (n === 1 ? job : child(job, "f", n));

/** The `n`th entry of a job's journal, counted from 1. */
export const journalEntryId = (job: string, n: number): string => child(job, "e", n);

/** The `n`th entry of a job's progress feed, counted from 1. */
export const feedEntryId = (job: string, n: number): string => child(job, "u", n);

/** The `n`th partial result of a job, counted from 1. */
export const outputId = (job: string, n: number): string => child(job, "o", n);

/** The pause before the `k`th look of an `until` that the journal entry `n` begins. */
export const lookId = (job: string, n: number, k: number): string => child(job, "w", `${n}.${k}`);

/** The mark of the execution that begins under this version of the job's task. */
export const executionMarkId = (job: string, version: number): string => child(job, "l", version);

/** The wake-up promise of a job that is suspended under this version of its task. */
export const leaseWakeupId = (job: string, version: number): string => child(job, "n", version);

/** The wake-up promise of a blocked job; `period` counts the periods after each of which the job is looked at again. */
export const unhandledWakeupId = (job: string, period: number): string => child(job, "b", period);

/** The promise that a request from outside settles: `key` stands for the call of `ctx.callback`. */
export const callbackId = (job: string, key: string): string => child(job, "h", key);

/** Whether a promise is a callback of one of a job's runs. */
export const isCallback = (id: string, job: string): boolean =>
  id.startsWith(job) && /^:(f\d+\.)?h/.test(id.slice(job.length));

/** What came of a step that was under way when its job was cancelled: `key` stands for the step. */
export const lateOutcomeId = (job: string, key: string): string => child(job, "q", key);

/** The promise that wakes a job at its deadline. */
export const deadlineId = (job: string): string => child(job, "d", "");

/** What the worker of an attempt that was asked to resume says about it. */
export const resumptionId = (job: string): string => child(job, "o", "");

/** The mark that the job stores as much as the `n`th says: see `size.ts`. */
export const storedMarkId = (job: string, n: number): string => child(job, "s", n);

/** The task that cleans up after a cancelled job. */
export const cleanUpId = (job: string): string => child(job, "x", "");

/** The `n`th chunk of a large result, counted from 0; `result` tells it from other results of the job. */
export const chunkId = (job: string, result: string, n: number): string => child(job, "p", `${result}.${n}`);

/** The `n`th claim on a shared job, counted from 1. */
export const claimId = (job: string, n: number): string => child(job, "c", n);

/** The record that the caller with this key started a shared job. */
export const startRecordId = (job: string, key: string): string => child(job, "r", key);

/** How the ids of all records end that the caller with this key started a shared job. */
export const startRecordEnd = (key: string): string => child("", "r", key);

// Sequences that belong to a deployment or to a caller.

const own = (owner: string, kind: string, rest: string): string => `${owner}${kind}${OWN}${rest}`;

/** The `n`th pause of a kind of job, counted from 1. */
export const pauseId = (namespace: string, kind: string, n: number): string => own(namespace, "paused", `${kind}.${n}`);

/** What the ids of a limit's slots begin with. */
export const limitId = (namespace: string, name: string): string => own(namespace, "limit", encodeURIComponent(name));

/** What the ids of the positions of a kind's jobs begin with that have the same key, which `hash` stands for. */
export const orderId = (namespace: string, kind: string, hash: string): string =>
  `${limitId(namespace, `${kind} ${hash}`)}${OWN}0.`;

/** The mark that a job with a position has begun. */
export const begunId = (job: string): string => child(job, "k", "");

/** When it is looked again for the job of a start that stands `at` a position. */
export const positionTimerId = (job: string, at: string, due: number): string => child(job, "k", `${at}.${due}`);

/** The `link`th use, counted from 1, of a slot of a limit. */
export const limitSlotId = (limit: string, slot: number, link: number): string => `${limit}${OWN}${slot}.${link}`;

/** A promise that counts what a caller started; `owner` is the namespace with the caller's key. */
export const quotaId = (owner: string, rest: string): string => own(owner, "quota", rest);

/** A promise of a caller's list of jobs; `owner` is the namespace with the caller's key. */
export const listId = (owner: string, rest: string): string => own(owner, "list", rest);

// SQL, for the databases of Resonate servers.

/** A condition on the column `id`: it is that of the first generation of a job. */
export const IS_FIRST_GENERATION_SQL = `instr(id, '${CHILD}') = 0 AND instr(id, '${GENERATION}') = 0`;

/** A condition: a column holds the id `?1` followed by a separator and more. An index finds these ids. */
export const belowSql = (column: string, separator: string): string =>
  `${column} > ?1 || '${separator}' AND ${column} < ?1 || '${successor(separator)}'`;

/** Marks of the ids of promises that belong to no job, but count, limit or list jobs. */
const [QUOTA, LIMIT, LIST] = ["quota", "limit", "list"].map((kind) => own("", kind, "")) as [string, string, string];

/** An SQL condition for ids with such a mark; `position` is the database's function that finds a text in a text. */
export const isBookkeepingSql = (position: "instr" | "strpos", marks = [QUOTA, LIMIT, LIST]): string =>
  marks.map((mark) => `${position}(id, '${mark}') > 0`).join(" OR ");

export const isLimitSql = (position: "instr" | "strpos"): string => isBookkeepingSql(position, [LIMIT]);

// In the syntax that JavaScript and Postgres share.
const CHAIN = `.*(?:${LIMIT}[^${OWN}]*${OWN}|${LIST})[0-9]+[.]`;
const NUMBER = "[0-9]+";
const QUOTA_END = "[.][tg][0-9]+(?:[.][0-9]+)?";

/** Regular expressions for Postgres, each with the group that it extracts from an id. */
export const POSTGRES_PATTERNS = {
  chain: `^(${CHAIN})${NUMBER}$`,
  link: `^${CHAIN}(${NUMBER})$`,
  quotaHours: `^.*${QUOTA}(${NUMBER})[.]${NUMBER}${QUOTA_END}$`,
  quotaPeriod: `^.*${QUOTA}${NUMBER}[.](${NUMBER})${QUOTA_END}$`,
};

const LINK_IN = new RegExp(`^(${CHAIN})(${NUMBER})$`, "s");
const QUOTA_IN = new RegExp(`${QUOTA}(${NUMBER})[.](${NUMBER})${QUOTA_END}$`);

/** The sequence that a limit's or a list's promise belongs to, as its ids begin, and its number; undefined for other ids. */
export function chainLink(id: string): { chain: string; n: number; isEntry: boolean } | undefined {
  const [, chain, n] = LINK_IN.exec(id) ?? [];
  return chain === undefined ? undefined : { chain, n: Number(n), isEntry: !chain.includes(LIMIT) };
}

/** Whether this is a promise of a quota whose period is over. */
export function isReservationOver(id: string, now: number): boolean {
  const [, hours, period] = QUOTA_IN.exec(id) ?? [];
  return now >= (Number(period) + 1) * Number(hours) * 3_600_000;
}
