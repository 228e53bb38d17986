/** `histories save JOB …`: writes the journals of jobs to files, over which a test runs today's code. */
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { VERSION_TAG } from "../../core/definitions/job.ts";
import type { History } from "../../core/engine/history.ts";
import { Journal, type JournalEntry } from "../../core/engine/journal.ts";
import { nameIn } from "../../core/engine/replay/commands/commands.ts";
import { readNewest } from "../../core/engine/runs.ts";
import { fromBase64, toBase64 } from "../../core/store/base64.ts";
import { decodeValue, STARTER } from "../../core/store/codec.ts";
import type { ResonateClient } from "../../core/store/connection/client.ts";
import { SearchRefused } from "../../core/store/connection/failures.ts";
import type { PromiseRecord } from "../../core/store/connection/protocol.ts";
import { callbackId, localId, runId, splitKey } from "../../core/store/ids.ts";
import { startedIn } from "../../worker/execution/child-jobs.ts";
import { readArguments } from "../arguments.ts";
import { readProject, typed } from "../project.ts";
import { findServer, SERVER_OPTIONS, SERVER_USAGE, type Server, withServer } from "./resonate-server.ts";

export const usage = () => `Usage: ${typed(readProject(), "histories", "save JOB … [options]")}

Writes the history of each job to a file: its arguments, and what its function had recorded, in its newest run. In a test,
\`await replayHistories("histories", [functions])\` runs today's code over them. JOB is the name of a job in logs.

  --to DIR         where the files go (default histories)
  --redact FIELDS  replaces the values of these fields, separated by commas, in arguments, records and results
${SERVER_USAGE}
  --help           show this text
`;

/** A value in which each field of these names is replaced. */
function redacted(value: unknown, fields: ReadonlySet<string>): unknown {
  if (fields.size === 0) return value;
  if (typeof value === "string") return redactedText(value, fields);
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map((each) => redacted(each, fields));
  const entries = Object.entries(value).map(([key, each]) => [
    key,
    fields.has(key) ? "redacted" : redacted(each, fields),
  ]);
  return Object.fromEntries(entries);
}

/** A text, in which JSON is redacted as well: so are the values of callbacks. */
function redactedText(text: string, fields: ReadonlySet<string>): string {
  if (!/^\s*[[{]/.test(text)) return text;
  try {
    return JSON.stringify(redacted(JSON.parse(text), fields));
  } catch {
    return text;
  }
}

async function historyOf({ client, namespace }: Server, job: string, fields: ReadonlySet<string>): Promise<History> {
  const id = namespace + job;
  const get = (of: string) => client.call({ kind: "promise.get", data: { id: of } });
  const promise = await get(id);
  const call = decodeValue(promise?.param ?? {}) as {
    func?: string;
    args?: unknown[];
    seed?: string;
    cleanup?: number;
  };
  if (!promise || typeof call?.func !== "string") throw new Error(`There is no job ${job}.`);
  const without = ({ data }: { data?: string }) =>
    data ? { data: toBase64(JSON.stringify(redacted(JSON.parse(fromBase64(data)), fields))) } : {};
  const bare = (record: PromiseRecord): PromiseRecord => {
    return { ...record, param: without(record.param), value: without(record.value), tags: {} };
  };
  const read = new Map<string, PromiseRecord>();
  const journal = await readNewest(new Journal(), id, async (of) => {
    const record = await get(of);
    if (record) read.set(of, record);
    return record;
  });
  const { run } = journal;
  const known = new Set(journal.events.map(({ promise }) => promise.id));
  const own = new Set(journal.events.flatMap(({ event }) => (isWait(event) ? [event.op] : [])));
  const { key } = splitKey(localId(id, namespace));
  const starter = splitKey(promise.tags[STARTER] ?? "").key;
  const awaited: History["awaited"] = {};
  // What the function heard of last is in no record.
  for (const record of await callbacksOf(client, id, runId(id, run?.n ?? 1))) awaited[record.id] = bare(record);
  const heard = journal.events.flatMap(({ event }) => event.after ?? []).filter((path) => !own.has(path));
  for (const name of new Set([...heard.map(nameIn), ...startedIn(journal)])) {
    for (const owner of new Set([key, starter, ""])) {
      const record = await get(namespace + owner + name);
      if (record) awaited[name] ??= bare(record);
    }
  }
  return {
    id,
    jobName: splitKey(job).name,
    kind: call.func,
    version: run?.version ?? (promise.tags[VERSION_TAG] === undefined ? undefined : Number(promise.tags[VERSION_TAG])),
    seed: run?.seed ?? call.seed,
    args: redacted(run ? run.args : call.args?.[0], fields),
    ...(run && { run: { n: run.n, before: run.before } }),
    startedAt: run?.startedAt ?? promise.createdAt,
    deadline: promise.timeoutAt - (call.cleanup ?? 0),
    ...(promise.state === "resolved" && { end: { value: redacted(decodeValue(promise.value), fields) } }),
    records: [...known].map((of) => bare(read.get(of) as PromiseRecord)),
    awaited,
  };
}

/** The promises of the callbacks of a job's run; none where the server lets nobody search. */
async function callbacksOf(client: ResonateClient, id: string, run: string): Promise<PromiseRecord[]> {
  const found: PromiseRecord[] = [];
  try {
    for (let cursor: string | undefined; ; ) {
      const tags = { "resonate:origin": id };
      const page = await client.search({ tags, limit: 500, ...(cursor !== undefined && { cursor }) });
      found.push(...page.promises.filter((each) => each.id.startsWith(callbackId(run, ""))));
      cursor = page.cursor;
      if (cursor === undefined) return found;
    }
  } catch (error) {
    if (error instanceof SearchRefused) return found;
    throw error;
  }
}

const isWait = ({ kind }: JournalEntry) => kind === "sleep" || kind === "ask";

export async function run(args: string[]): Promise<void> {
  const options = readArguments(() => {
    const own = { to: { type: "string", default: "histories" }, redact: { type: "string", default: "" } } as const;
    const { values, positionals } = parseArgs({ args, allowPositionals: true, options: { ...SERVER_OPTIONS, ...own } });
    const [verb, ...jobs] = positionals;
    if (verb !== "save" || jobs.length === 0) throw new Error("Name the jobs: save JOB …");
    return {
      jobs,
      to: values.to,
      fields: new Set(values.redact.split(",").filter(Boolean)),
      server: findServer(values),
    };
  });
  await withServer(options.server, async (server) => {
    await mkdir(options.to, { recursive: true });
    for (const job of options.jobs) {
      const history = await historyOf(server, job, options.fields);
      const file = join(options.to, `${job.replace(/[^\w.~-]/g, "_").slice(0, 100)}.json`);
      await writeFile(file, `${JSON.stringify(history, undefined, 1)}\n`);
      console.log(`${file}: ${history.records.length} records`);
    }
  });
}
