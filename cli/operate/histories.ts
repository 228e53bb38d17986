/** `histories save JOB …`: writes the journals of jobs to files, so that a test can replay them with today's code. */
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { hashed, VERSION_TAG } from "../../core/author/index.ts";
import {
  type History,
  type HistoryEnd,
  Journal,
  type JournalEntry,
  nameIn,
  newestRun,
  type Run,
  runIn,
} from "../../core/engine/index.ts";
import { firstSeed, type Resumption } from "../../core/jobs/index.ts";
import {
  callbackId,
  decodeValue,
  endOf,
  fromBase64,
  getOf,
  isCallback,
  localId,
  type PromiseRecord,
  pagesOf,
  RESUMES_TAG,
  type ResonateClient,
  resumptionId,
  runId,
  SearchRefused,
  STARTER_TAG,
  splitKey,
  toBase64,
} from "../../core/resonate/index.ts";
import { optionOr, usageOf, WrongArguments } from "../arguments.ts";
import { print } from "../terminal/print.ts";
import { SERVER_OPTIONS, type Server, withServer } from "./resonate-server.ts";

const OPTIONS = {
  to: optionOr("histories", "DIR", "where the files go (default histories)"),
  redact: optionOr(
    "",
    "FIELDS",
    "replaces the values of these fields, separated by commas, in arguments, records and results",
  ),
  ...SERVER_OPTIONS,
};

export const usage = usageOf(
  "save JOB … [options]",
  `Writes the history of each job to a file: its arguments, and what its function had recorded. A run that ended with
ctx.continueAs has a file of its own, JOB.run-N.json. In a test, \`await replayHistories("histories", [functions])\` runs
today's code over them. JOB is the name of a job in logs.`,
  OPTIONS,
);

/** A copy of a value in which the fields with these names are replaced. */
function redact(value: unknown, fields: ReadonlySet<string>): unknown {
  if (fields.size === 0 || value === undefined) return value;
  const text = JSON.stringify(value, (key, each) => {
    if (fields.has(key)) return "redacted";
    return typeof each === "string" ? redactText(each, fields) : each;
  });
  return JSON.parse(text);
}

/** Redacts a text that is JSON, as the values of callbacks are; returns any other text unchanged. */
function redactText(text: string, fields: ReadonlySet<string>): string {
  if (!/^\s*[[{]/.test(text)) return text;
  try {
    return JSON.stringify(redact(JSON.parse(text), fields));
  } catch {
    return text;
  }
}

type Get = (id: string) => Promise<PromiseRecord | undefined>;

/** The parameter of a job's promise. */
interface Call {
  func?: string;
  args?: unknown[];
  cleanup?: number;
}

/** The history of each run of a job, in order. */
async function* historiesOf(server: Server, job: string, fields: ReadonlySet<string>): AsyncGenerator<History> {
  const { client, namespace } = server;
  const id = namespace + job;
  const get: Get = (of) => client.call(getOf(of));
  const promise = await get(id);
  const call = decodeValue(promise?.param ?? {}) as Call;
  if (!promise || typeof call?.func !== "string") throw new Error(`There is no job ${job}.`);
  const common = {
    id,
    jobName: splitKey(job).name,
    kind: call.func,
    state: endOf(promise),
    deadline: promise.timeoutAt - (call.cleanup ?? 0),
  };
  const first = {
    version: promise.tags[VERSION_TAG] === undefined ? undefined : Number(promise.tags[VERSION_TAG]),
    seed: await firstSeed(promise, get),
    args: redact(await firstArgs(promise, call, get), fields),
    startedAt: promise.createdAt,
  };
  const callbacks = await callbacksOf(client, id);
  let run: Run | undefined;
  for (let n = 1; ; n++) {
    const nextPromise = await get(runId(id, n + 1));
    const next = nextPromise && runIn(n + 1, nextPromise);
    const end = next ? { next: redact(next.args, fields) } : endIn(promise, fields);
    yield {
      ...common,
      ...(run ? startOf(run, fields) : first),
      ...(end && { end }),
      ...(await recordsOf(server, promise, runId(id, n), new Journal(run), { get, callbacks, fields })),
    };
    if (!next) return;
    run = next;
  }
}

/** The end of a job that is complete or failed. */
function endIn(promise: PromiseRecord, fields: ReadonlySet<string>): HistoryEnd | undefined {
  const state = endOf(promise);
  if (state !== "resolved" && state !== "rejected") return undefined;
  const value = decodeValue(promise.value);
  if (state === "resolved") return { value: redact(value, fields) };
  // A message may hold the values of redacted fields.
  return { error: value instanceof Error && fields.size === 0 ? { message: value.message } : {} };
}

const startOf = ({ n, before, version, seed, args, startedAt }: Run, fields: ReadonlySet<string>) => {
  return { run: { n, before }, version, seed, args: redact(args, fields), startedAt };
};

/** The arguments of a job's first run. A job that resumes a failed one has the arguments of that job's newest run. */
async function firstArgs({ id, tags }: PromiseRecord, { args }: Call, get: Get): Promise<unknown> {
  const earlier = tags[RESUMES_TAG];
  const resumption = earlier !== undefined && decodeValue((await get(resumptionId(id)))?.param ?? {});
  const lastRun = resumption && "from" in (resumption as Resumption) ? await newestRun(earlier, get) : undefined;
  return lastRun ? lastRun.args : args?.[0];
}

/** The records of a run, and the promises that it awaited. */
async function recordsOf(
  { namespace }: Server,
  { id, tags }: PromiseRecord,
  run: string,
  journal: Journal,
  { get, callbacks, fields }: { get: Get; callbacks: readonly PromiseRecord[]; fields: ReadonlySet<string> },
): Promise<Pick<History, "records" | "awaitedPromises">> {
  const withoutSecrets = ({ data }: { data?: string }) =>
    data ? { data: toBase64(JSON.stringify(redact(JSON.parse(fromBase64(data)), fields))) } : {};
  const bare = (record: PromiseRecord): PromiseRecord => {
    return { ...record, param: withoutSecrets(record.param), value: withoutSecrets(record.value), tags: {} };
  };
  const records = new Map<string, PromiseRecord>();
  await journal.load(run, async (of) => {
    const record = await get(of);
    if (record) records.set(of, record);
    return record;
  });
  const recordIds = new Set(journal.events.map(({ promise }) => promise.id));
  const ownWaits = new Set(journal.events.flatMap(({ event }) => (isWait(event) ? [event.op] : [])));
  const { key } = splitKey(localId(id, namespace));
  const starter = splitKey(tags[STARTER_TAG] ?? "").key;
  const awaitedPromises: History["awaitedPromises"] = {};
  // The last callbacks whose values the function got are in no record.
  for (const record of callbacks)
    if (record.id.startsWith(callbackId(run, ""))) awaitedPromises[record.id] = bare(record);
  const otherWaits = journal.events.flatMap(({ event }) => event.after ?? []).filter((path) => !ownWaits.has(path));
  for (const name of new Set([...otherWaits.map(nameIn), ...journal.startedJobs])) {
    for (const owner of new Set([key, starter, ""])) {
      const record = await get(namespace + owner + name);
      if (record) awaitedPromises[name] ??= bare(record);
    }
  }
  return { records: [...recordIds].map((of) => bare(records.get(of) as PromiseRecord)), awaitedPromises };
}

/** The promises of the callbacks of a job's runs; none if the server refuses the search. */
async function callbacksOf(client: ResonateClient, id: string): Promise<PromiseRecord[]> {
  const callbacks: PromiseRecord[] = [];
  try {
    for await (const page of pagesOf(client, { tags: { "resonate:origin": id } }))
      callbacks.push(...page.filter((each) => isCallback(each.id, id)));
    return callbacks;
  } catch (error) {
    if (error instanceof SearchRefused) return callbacks;
    throw error;
  }
}

const isWait = ({ kind }: JournalEntry) => kind === "sleep" || kind === "ask";

/** The name of a job's file, without its ending. A hash distinguishes jobs whose names do not fit into a file name. */
export async function fileNameOf(job: string): Promise<string> {
  const name = job.replace(/[^\w.~-]/g, "_").slice(0, 100);
  return name === job ? name : `${name}-${(await hashed(job)).slice(0, 8)}`;
}

export async function run(args: string[]): Promise<void> {
  const { values, positionals } = parseArgs({ args, allowPositionals: true, options: OPTIONS });
  const [verb, ...jobs] = positionals;
  if (verb !== "save" || jobs.length === 0) throw new WrongArguments("Name the jobs: save JOB …");
  const fields = new Set(values.redact.split(",").filter(Boolean));
  await withServer(values, async (server) => {
    await mkdir(values.to, { recursive: true });
    for (const job of jobs) {
      const name = join(values.to, await fileNameOf(job));
      for await (const history of historiesOf(server, job, fields)) {
        const { run, end, records } = history;
        const file = end && "next" in end ? `${name}.run-${run?.n ?? 1}.json` : `${name}.json`;
        await writeFile(file, `${JSON.stringify(history, undefined, 1)}\n`);
        print(`${file}: ${records.length} records`);
      }
    }
  });
}
