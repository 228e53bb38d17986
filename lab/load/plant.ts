/** Writes sleeping timers into a server's database, as copies of a timer that was set through the edge. */
import { spawn } from "node:child_process";
import { DatabaseSync, type SQLInputValue } from "node:sqlite";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { Codec, type PromiseRecord } from "@resonatehq/sdk";
import { journalEntryId } from "../../core/resonate/index.ts";
import { openDatabase } from "../../server/node/database.ts";
import type { Resonate } from "../../test/support/resonate.ts";
import { until } from "../../testing/stack/program.ts";

/** A file or a database of the server 0.9.8, or the data directory of a stopped embedded server. */
export type Database = { sqlite: string } | { postgres: string } | { embedded: string };

export interface Sleepers {
  /** The number of copies, and when copy n (counted from 0) is due, in milliseconds since the epoch. */
  count: number;
  dueAt(n: number): number;
  /** An address that replaces the template's. */
  target?: string;
}

/** The records of a sleeping timer: of the job and of its sleep. */
export interface Template {
  job: PromiseRecord;
  sleep: PromiseRecord;
}

const codec = new Codec();
const TARGET = "resonate:target";
const BATCH = 20_000;

/** Waits until the timer with this promise id sleeps, and reads its records. */
export async function readTemplate(resonate: Resonate, id: string): Promise<Template> {
  const get = async (id: string) => {
    const { head, data } = await resonate.call("promise.get", { id });
    return head.status === 200 && typeof data === "object" ? data.promise : undefined;
  };
  return until(`${id} to sleep`, async () => {
    const [job, sleep] = await Promise.all([get(id), get(journalEntryId(id, 1))]);
    const { head, data } = await resonate.call("task.get", { id });
    const sleeps = head.status === 200 && typeof data === "object" && data.task.state === "suspended";
    return job && sleep && sleeps ? { job, sleep } : undefined;
  });
}

/** The promise id of the n-th copy. */
export const sleeperId = ({ job }: Template, n: number): string => `${job.id}.${n}`;

function copies(template: Template, { count, dueAt, target }: Sleepers) {
  const { job, sleep } = template;
  const { data: call } = codec.decodePromise(job).param;
  const [args] = call.args;
  const texts = { headers: JSON.stringify(job.param.headers ?? {}) };
  const change = (tags: Record<string, string>, id: string) => {
    const moved = Object.entries(tags).map(([tag, value]) => [tag, value.replace(job.id, id)]);
    return JSON.stringify({
      ...Object.fromEntries(moved),
      ...(tags[TARGET] !== undefined && target && { [TARGET]: target }),
    });
  };
  return Array.from(
    { length: Math.ceil(count / BATCH) },
    (_, batch) =>
      function* () {
        for (let n = batch * BATCH; n < Math.min(count, (batch + 1) * BATCH); n++) {
          const [id, due] = [sleeperId(template, n), Math.round(dueAt(n))];
          const fires_at = new Date(due).toISOString();
          const sent = codec.encode({ ...call, args: [{ ...args, timer_name: `${args.timer_name}.${n}`, fires_at }] });
          const last = due + (job.timeoutAt - sleep.timeoutAt);
          yield {
            ...texts,
            job: { id, param: sent.data ?? "", tags: change(job.tags, id), timeoutAt: last, createdAt: job.createdAt },
            sleep: {
              id: sleep.id.replace(job.id, id),
              param: sleep.param.data ?? "",
              tags: change(sleep.tags, id),
              timeoutAt: due,
              createdAt: sleep.createdAt,
            },
          };
        }
      },
  );
}

/** Writes the copies. The CPU time for this is not counted as the server's. */
export async function plant(database: Database, template: Template, sleepers: Sleepers): Promise<void> {
  const batches = copies(template, sleepers);
  if ("postgres" in database) {
    for (const batch of batches) await copyIn(database.postgres, [...batch()]);
    // Usual after a bulk load: the planner gets statistics of the tables, and all data is on disk.
    await psql(database.postgres, ["VACUUM ANALYZE;\n", "CHECKPOINT;\n"], []);
  } else {
    const isEmbedded = "embedded" in database;
    const db = isEmbedded ? openDatabase(database.embedded).db : new DatabaseSync(database.sqlite);
    try {
      db.exec("PRAGMA busy_timeout = 10000");
      const insert = isEmbedded ? intoEmbedded(db) : intoSqlite(db);
      for (const batch of batches) {
        db.exec("BEGIN IMMEDIATE");
        for (const row of batch()) insert(row);
        db.exec("COMMIT");
      }
    } finally {
      db.close();
    }
  }
}

type Row = ReturnType<ReturnType<typeof copies>[number]> extends Generator<infer R> ? R : never;

function intoSqlite(db: DatabaseSync): (row: Row) => void {
  const promise = db.prepare(
    "INSERT INTO promises (id, param_headers, param_data, tags, timeout_at, created_at) VALUES (?, ?, ?, ?, ?, ?)",
  );
  const timeout = db.prepare("INSERT INTO promise_timeouts (timeout_at, id) VALUES (?, ?)");
  const task = db.prepare("INSERT INTO tasks (id, state, version) VALUES (?, 'suspended', 1)");
  const callback = db.prepare("INSERT INTO callbacks (awaited_id, awaiter_id) VALUES (?, ?)");
  return ({ headers, job, sleep }) => {
    for (const { id, param, tags, timeoutAt, createdAt } of [job, sleep]) {
      promise.run(id, headers, param, tags, timeoutAt, createdAt);
      timeout.run(timeoutAt, id);
    }
    task.run(job.id);
    callback.run(sleep.id, job.id);
  };
}

function intoEmbedded(db: DatabaseSync): (row: Row) => void {
  const promise = db.prepare("INSERT INTO promises VALUES (?, 'pending', ?, '{}', ?, ?, ?, ?, NULL, ?)");
  const task = db.prepare("INSERT INTO tasks VALUES (?, 'suspended', 1, NULL, NULL, '[]', NULL, NULL, NULL)");
  const callback = db.prepare("INSERT INTO callbacks VALUES (?, ?)");
  return ({ headers, job, sleep }) => {
    for (const { id, param, tags, timeoutAt, createdAt } of [job, sleep]) {
      const values: SQLInputValue[] = [id, `{"headers":${headers},"data":"${param}"}`, tags, id, timeoutAt, createdAt];
      promise.run(...values, id === job.id ? timeoutAt : null);
    }
    task.run(job.id);
    callback.run(sleep.id, job.id);
  };
}

/** Copies rows into Postgres with `psql`, which every installation of Postgres has. */
async function copyIn(url: string, rows: Row[]): Promise<void> {
  const line = (...columns: (string | number)[]) =>
    `${columns.map((column) => String(column).replaceAll("\\", "\\\\").replaceAll("\t", "\\t")).join("\t")}\n`;
  const both = rows.flatMap(({ headers, job, sleep }) => [job, sleep].map((part) => ({ headers, ...part })));
  function* script() {
    const tables = {
      "promises (id, param_headers, param_data, tags, timeout_at, created_at)": both.map(
        ({ headers, id, param, tags, timeoutAt, createdAt }) => line(id, headers, param, tags, timeoutAt, createdAt),
      ),
      "promise_timeouts (timeout_at, id)": both.map(({ timeoutAt, id }) => line(timeoutAt, id)),
      "tasks (id, state, version)": rows.map(({ job }) => line(job.id, "suspended", 1)),
      "callbacks (awaited_id, awaiter_id)": rows.map(({ job, sleep }) => line(sleep.id, job.id)),
    };
    for (const [table, lines] of Object.entries(tables)) yield* [`COPY ${table} FROM STDIN;\n`, ...lines, "\\.\n"];
  }
  await psql(url, script(), ["--single-transaction"]);
}

async function psql(url: string, script: Iterable<string>, options: string[]): Promise<void> {
  const program = spawn("psql", ["--quiet", "--no-psqlrc", "--set=ON_ERROR_STOP=1", ...options, url], {
    stdio: ["pipe", "inherit", "inherit"],
  });
  const ended = new Promise<number | null>((resolve, reject) => program.on("exit", resolve).on("error", reject));
  await pipeline(Readable.from(script), program.stdin);
  const code = await ended;
  if (code !== 0) throw new Error(`psql ended with ${code}`);
}
