/**
 * The grammar of promise ids, which no other module knows.
 *
 *     [namespace][caller key]name[~generation]      a job; a shared job has no caller key
 *     <job>:<kind><rest>                            a child of a job: a journal entry, a claim, a wake-up promise
 *     [namespace][caller key]<kind>:<rest>          a sequence or counter of a deployment or caller, its own origin
 *
 * A namespace contains no `:`, and a job's name contains neither `:` nor `~`.
 */

/** Separates a job's id from the rest of a child's id. */
export const CHILD_SEPARATOR = ":";

/** Separates the parts of an id that belongs to no job and is its own origin. */
const OWN_SEPARATOR = ":";

/** Separates a job's name from its generation. */
export const GENERATION_SEPARATOR = "~";

const successor = (mark: string): string => String.fromCharCode(mark.charCodeAt(0) + 1);

/** The range of ids that begin with `prefix`: from the first of the pair up to the second, exclusive. */
export const idsFrom = (prefix: string): [string, string] => [
  prefix,
  prefix.slice(0, -1) + successor(prefix.slice(-1)),
];

// Jobs.

/** Matches a character that a job's name must not contain: a separator, a control character or a line break. */
const RESERVED_PATTERN = `[${CHILD_SEPARATOR}${GENERATION_SEPARATOR}\\p{Cc}\\p{Cs}\\p{Zl}\\p{Zp}]`;
const HAS_RESERVED = new RegExp(RESERVED_PATTERN, "u");

const hex = (character: string): string => character.charCodeAt(0).toString(16).toUpperCase();

/** Matches what follows the `%` of an escape. */
const ESCAPE_CODE = `${hex(CHILD_SEPARATOR)}|${hex(GENERATION_SEPARATOR)}|25|[01][0-9A-F]|7F|[89][0-9A-F]|[2A]0$|u[0-9A-F]{4}`;

/** Matches reserved characters, a space at the end, and each `%` that looks like the beginning of an escape. */
const TO_ESCAPE = new RegExp(`${RESERVED_PATTERN}|\\s$|%(?=${ESCAPE_CODE})`, "giu");
const ESCAPE_PATTERN = new RegExp(`%(${ESCAPE_CODE})`, "g");

/** Whether a text, without a generation, may be a job's name. */
export const mayBeName = (text: string): boolean => !HAS_RESERVED.test(text);

/** The one form of a name: texts that look the same, as `é` in one character or two, are one name. */
export const oneForm = (name: string): string => name.normalize("NFC");

/** Escapes a text so that it may be part of a job's name. Different texts stay different. */
export function escapeId(text: string): string {
  return text.replace(TO_ESCAPE, (character) => {
    const code = hex(character);
    return code.length > 2 ? `%u${code.padStart(4, "0")}` : `%${code.padStart(2, "0")}`;
  });
}

/** The text from which {@link escapeId} made `text`. */
export const unescapeId = (text: string): string =>
  text.replace(ESCAPE_PATTERN, (_, code: string) => String.fromCharCode(Number.parseInt(code.replace("u", ""), 16)));

const NUMBERED_PATTERN = new RegExp(`^(.*)${GENERATION_SEPARATOR}([1-9]\\d{0,8})$`, "s");

/** `timer_tea~3` is the third generation of `timer_tea`; the first carries no suffix. */
export function splitGeneration(name: string): { base: string; generation: number } {
  const match = NUMBERED_PATTERN.exec(name);
  if (!match?.[1] || match[2] === "1") return { base: name, generation: 1 };
  return { base: match[1], generation: Number(match[2]) };
}

export function withGeneration(base: string, generation: number): string {
  return generation === 1 ? base : `${base}${GENERATION_SEPARATOR}${generation}`;
}

/** Matches a text that may be the namespace of a deployment. */
export const NAMESPACE_PATTERN = new RegExp(`^[^${CHILD_SEPARATOR}${GENERATION_SEPARATOR}\\p{Cc}]*$`, "u");

/** The id of the job that an id belongs to: the id itself, or the job of which it is a child. */
export const rootOf = (id: string): string => id.split(CHILD_SEPARATOR, 1)[0] ?? "";

/** Whether an id is a job's, and not a child's or a counter's. */
export const isRoot = (id: string): boolean => !id.includes(CHILD_SEPARATOR);

export const isChildOf = (job: string, id: string): boolean => id.startsWith(job + CHILD_SEPARATOR);

export const localId = (id: string, namespace: string): string =>
  id.startsWith(namespace) ? id.slice(namespace.length) : id;

// Callers.

/** The length of a caller's hash in base64url, 6 bits each: too long for anyone to find an identity with another caller's key. */
export const CALLER_HASH = 16;

/** The caller's key, which precedes the name of the caller's own jobs. */
export const callerKey = (hash: string): string => `c${hash}.`;

const IS_HASH = new RegExp(`^[\\w-]{${CALLER_HASH}}$`);
const KEY_PATTERN = new RegExp(`^c[\\w-]{${CALLER_HASH}}\\.`);

export const isCallerHash = (text: string): boolean => IS_HASH.test(text);

/** Splits an id without its namespace into its caller's key, which is empty for a shared job, and the name. */
export function splitKey(id: string): { key: string; name: string } {
  const key = KEY_PATTERN.exec(id)?.[0] ?? "";
  return { key, name: id.slice(key.length) };
}

// Children of a job.

/** The id of a child. Children of a job's run have another separator: `job:f2.e1`. */
const child = (job: string, kind: string, rest: string | number): string =>
  `${job}${isRoot(job) ? CHILD_SEPARATOR : "."}${kind}${rest}`;

/** The `n`th run of a job, counted from 1, whose journal entries are its children. The first run is the job itself. */
export const runId = (job: string, n: number): string => (n === 1 ? job : child(job, "f", n));

/** The `n`th entry of a job's journal, counted from 1. */
export const journalEntryId = (job: string, n: number): string => child(job, "e", n);

/** The `n`th entry of a job's progress feed, counted from 1. */
export const feedEntryId = (job: string, n: number): string => child(job, "u", n);

/** The `n`th partial result of a job, counted from 1. */
export const outputId = (job: string, n: number): string => child(job, "o", n);

/** Whether a promise is a partial result or an event of the job. */
export const isOutput = (id: string, job: string): boolean =>
  id.startsWith(job) && /^:o\d+$/.test(id.slice(job.length));

/** The pause before the `k`th look of an `until` that the journal entry `n` begins. */
export const lookId = (job: string, n: number, k: number): string => child(job, "w", `${n}.${k}`);

/** The mark of the execution that begins under this version of the job's task. */
export const executionMarkId = (job: string, version: number): string => child(job, "l", version);

/** The wake-up promise of a job that is suspended under this version of its task; `k`: how many such have settled before. */
export const leaseWakeupId = (job: string, version: number, k = 0): string =>
  child(job, "n", k === 0 ? version : `${version}.${k}`);

/** The wake-up promise of a blocked job; `period` is the number of the period at whose end the job is tried again. */
export const unhandledWakeupId = (job: string, period: number): string => child(job, "b", period);

/** The promise that a request from outside settles; `key` identifies the call of `ctx.callback`. */
export const callbackId = (job: string, key: string): string => child(job, "h", key);

/** Whether a promise is a callback of one of a job's runs. */
export const isCallback = (id: string, job: string): boolean =>
  id.startsWith(job) && /^:(f\d+\.)?h/.test(id.slice(job.length));

/** The outcome of a step that was running when its job was cancelled; `key` identifies the step. */
export const lateOutcomeId = (job: string, key: string): string => child(job, "q", key);

/** The promise that wakes a job at its deadline. */
export const deadlineId = (job: string): string => child(job, "d", "");

/** The record of how an attempt that was asked to resume began. */
export const resumptionId = (job: string): string => child(job, "o", "");

/** The `n`th mark of how much a job stores: see `size.ts`. */
export const storedMarkId = (job: string, n: number): string => child(job, "s", n);

/** The task that cleans up after a cancelled job. */
export const cleanUpId = (job: string): string => child(job, "x", "");

/** The `n`th chunk of a large result, counted from 0; `result` distinguishes the results of the job. */
export const chunkId = (job: string, result: string, n: number): string => child(job, "p", `${result}.${n}`);

/** The `n`th claim on a shared job, counted from 1. */
export const claimId = (job: string, n: number): string => child(job, "c", n);

/** The record that the caller with this key started a shared job. */
export const startRecordId = (job: string, key: string): string => child(job, "r", key);

/** The end of the ids of all start records of the caller with this key. */
export const startRecordEnd = (key: string): string => child("", "r", key);

// Sequences that belong to a deployment or to a caller.

const own = (owner: string, kind: string, rest: string): string => `${owner}${kind}${OWN_SEPARATOR}${rest}`;

/** The `n`th pause of a kind of job, counted from 1. */
export const pauseId = (namespace: string, kind: string, n: number): string => own(namespace, "paused", `${kind}.${n}`);

/** The prefix of the ids of a limit's slots. */
export const limitId = (namespace: string, name: string): string => own(namespace, "limit", encodeURIComponent(name));

/** The prefix of the ids of positions, for the jobs of a kind whose key has this hash. */
export const orderId = (namespace: string, kind: string, hash: string): string =>
  `${limitId(namespace, `${kind} ${hash}`)}${OWN_SEPARATOR}0.`;

/** The mark that a job with a position has begun. */
export const begunId = (job: string): string => child(job, "k", "");

/** The timer until the job of the start at the place `at` is looked for again. */
export const positionTimerId = (job: string, at: string, due: number): string => child(job, "k", `${at}.${due}`);

/** The timer until clean-ups before a job, which should have ended by then, are no longer waited for. */
export const cleanUpTimerId = (job: string, due: number): string => child(job, "k", `x.${due}`);

/** The `link`th use, counted from 1, of a slot of a limit. */
export const limitSlotId = (limit: string, slot: number, link: number): string =>
  `${limit}${OWN_SEPARATOR}${slot}.${link}`;

/** The mark that the record of a caller was begun; `owner` is the namespace with the caller's key. */
export const recordMarkId = (owner: string): string => own(owner, "record", "begun");

// SQL, for the databases of Resonate servers.

/** A condition that the column `id` is the id of a job's first generation. */
export const IS_FIRST_GENERATION_SQL = `instr(id, '${CHILD_SEPARATOR}') = 0 AND instr(id, '${GENERATION_SEPARATOR}') = 0`;

/** A condition that a column holds the id `?1` followed by a separator and more. It can use an index. */
export const belowSql = (column: string, separator: string): string =>
  `${column} > ?1 || '${separator}' AND ${column} < ?1 || '${successor(separator)}'`;

/** The part by which ids of promises that limit jobs are recognized. */
const LIMIT_PREFIX = own("", "limit", "");

/** An SQL condition for such ids; `position` is the database's function that finds a text within a text. */
export const isLimitSql = (position: "instr" | "strpos"): string => `${position}(id, '${LIMIT_PREFIX}') > 0`;

// In the syntax that JavaScript and Postgres share.
const CHAIN_PATTERN = `.*${LIMIT_PREFIX}[^${OWN_SEPARATOR}]*${OWN_SEPARATOR}[0-9]+[.]`;
const NUMBER_PATTERN = "[0-9]+";

/** Regular expressions for Postgres, each with the group that it extracts from an id. */
export const POSTGRES_PATTERNS = {
  chain: `^(${CHAIN_PATTERN})${NUMBER_PATTERN}$`,
  link: `^${CHAIN_PATTERN}(${NUMBER_PATTERN})$`,
};

const LINK_IN = new RegExp(`^(${CHAIN_PATTERN})(${NUMBER_PATTERN})$`, "s");

/** The prefix of the sequence that a limit's promise belongs to, and its number there; undefined for other ids. */
export function chainLink(id: string): { chain: string; n: number } | undefined {
  const [, chain, n] = LINK_IN.exec(id) ?? [];
  return chain === undefined ? undefined : { chain, n: Number(n) };
}
