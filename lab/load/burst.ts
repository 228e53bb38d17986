/** Many timers that are due at the same moment, or that fell due while the server was down, beside other work. */
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { setTimeout as delay } from "node:timers/promises";
import PQueue from "p-queue";
import { journalEntryId } from "../../core/resonate/index.ts";
import { rpc } from "../../test/support/rpc.ts";
import { type Stack, startStack } from "../../test/support/stack.ts";
import { storedJobs } from "../../test/support/stored.ts";
import { cpuSeconds } from "../../test/support/usage.ts";
import { until } from "../../testing/stack/program.ts";

export interface BurstOptions {
  /** How many timers are due at the same moment, and how many are overdue when the server comes back. */
  timers: number;
  overdue: number;
  workers: number;
  data: string;
  say: (line: string) => void;
}

export interface BurstResult {
  /** How late the timers of the first burst were, and how long calls took at that time, in milliseconds. */
  late: number[];
  answers: number[];
  /** How long after its start the server needed for the overdue timers, in seconds; then as above, for the other timers and calls. */
  through: number;
  lateBeside: number[];
  answersBeside: number[];
  /** The CPU time per overdue timer, in milliseconds, by process. */
  cpu: Record<string, number>;
}

/** How long an answer may take, in milliseconds. A failed call counts as having taken this long. */
const FAILED = 60_000;

/** The interval of the calls beside the burst, in milliseconds. */
const BEAT = 50;
/** The length of the timers that these calls set, in seconds. */
const SHORT = 1;

export async function runBurst({ timers, overdue, workers, data, say }: BurstOptions): Promise<BurstResult> {
  await using stack = await startStack({ workers, own: { data } });
  const fires = Date.now() + 10_000 + timers * 10;
  await new PQueue({ concurrency: 16 }).addAll(
    Array.from({ length: timers }, (_, n) => () => setTimer(stack, `burst${n}`, (fires - Date.now()) / 1_000)),
  );
  say(`${timers} timers are set, ${((fires - Date.now()) / 1_000).toFixed(1)} s before they are due`);
  if (fires < Date.now() + 3_000) throw new Error("setting the timers took too long");
  await delay(fires - 2_000 - Date.now());
  const first = beside(stack, "first");
  const named = (name: string) => name.startsWith("timer_burst");
  await until("the timers to have ended", async () => (await settledBy(stack)) >= timers, 120_000);
  await delay(2_000);
  const answers = await first.stop();
  const late = await lateness(stack, (name) => named(name) || name.startsWith("timer_first"));
  say(`they have ended, the last ${Math.round(Math.max(...late))} ms late`);

  await setTimer(stack, "template", 3_600);
  await until("the template to sleep", async () => {
    const { head, data } = await stack.resonate.call("task.get", { id: `${stack.namespace}timer_template` });
    return head.status === 200 && (data as { task: { state: string } }).task.state === "suspended";
  });
  const { server } = stack;
  if (!server) throw new Error("the server is not this run's own");
  await server.end("SIGTERM");
  plant(join(data, "resonate.db"), `${stack.namespace}timer_template`, overdue, Date.now());
  const before = await settledBy(stack);
  const begun = Date.now();
  await server.start();
  const pids = {
    server: server.process.pid,
    ...Object.fromEntries(stack.workers.map(({ process }, i) => [`worker ${i + 1}`, process.pid])),
  };
  const used = Object.entries(pids).map(([name, pid]) => [name, pid, name === "server" ? 0 : cpuSeconds(pid)] as const);
  const second = beside(stack, "second");
  await until(
    "those that were overdue to have ended",
    async () => (await settledBy(stack)) - before >= overdue,
    600_000,
  );
  const through = (Date.now() - begun) / 1_000;
  say(`${overdue} that were overdue have ended after ${through.toFixed(1)} s`);
  const cpu = Object.fromEntries(
    used.map(([name, pid, before]) => [name, ((cpuSeconds(pid) - before) / overdue) * 1_000]),
  );
  const answersBeside = await second.stop();
  const lateBeside = await lateness(stack, (name) => name.startsWith("timer_second"));
  await server.end("SIGTERM");
  return { late, answers, through, lateBeside, answersBeside, cpu };
}

async function call({ url }: Stack, name: string, args: object) {
  const { result, error } = await rpc(url, "tools/call", { name, arguments: args }, { capabilities: {} });
  if (error || result.isError) throw new Error(`${name}: ${error?.message ?? result.content[0].text}`);
  return result.structuredContent;
}

const setTimer = (stack: Stack, timer_name: string, seconds: number) =>
  call(stack, "set_timer", { timer_name, seconds });

/** Steadily sets short timers and looks at them. `stop` waits for the last answer and resolves with the durations of all. */
function beside(stack: Stack, name: string): { stop(): Promise<number[]> } {
  const took: number[] = [];
  const under = new Set<Promise<void>>();
  let isOver = false;
  const timed = async (work: () => Promise<unknown>) => {
    const from = performance.now();
    const isAnswered = await work().then(
      () => true,
      () => false,
    );
    took.push(isAnswered ? performance.now() - from : FAILED);
  };
  const running = (async () => {
    for (let n = 0; !isOver; n++) {
      const timer_name = `${name}${n}`;
      const asked: Promise<void> = (async () => {
        await timed(() => setTimer(stack, timer_name, SHORT));
        await timed(() => call(stack, "get_timer_status", { timer_name }));
        await timed(() => call(stack, "probe_status", { job_names: [`timer_${timer_name}`] }));
      })().finally(() => under.delete(asked));
      under.add(asked);
      await delay(BEAT);
    }
    await Promise.all(under);
    await delay(SHORT * 1_000 + 2_000);
  })();
  return {
    async stop() {
      isOver = true;
      await running;
      return took;
    },
  };
}

/** The number of jobs that the workers have ended, from their metrics. */
async function settledBy({ workers }: Stack): Promise<number> {
  const counts = await Promise.all(
    workers.map(async ({ process }) => {
      const text = await (await fetch(new URL("/metrics", process.healthUrl))).text();
      const lines = text.split("\n").filter((line) => line.startsWith("durable_worker_jobs_settled_total{"));
      return lines.reduce((sum, line) => sum + Number(line.split(" ").at(-1)), 0);
    }),
  );
  return counts.reduce((sum, count) => sum + count, 0);
}

/** How late timers were, in milliseconds. @throws {Error} if a timer has not ended */
async function lateness(stack: Stack, isMeant: (name: string) => boolean): Promise<number[]> {
  return [...(await storedJobs(stack)).values()]
    .filter(({ name }) => isMeant(name))
    .map(({ name, args, settledAt }) => {
      if (settledAt === undefined) throw new Error(`${name} has not ended`);
      return settledAt - Date.parse(args.fires_at);
    });
}

/** Writes copies of a sleeping timer, due at `due`, into the database of a server that is down. */
function plant(file: string, template: string, count: number, due: number): void {
  const db = new DatabaseSync(file);
  const rows = (table: string, column: string) =>
    db.prepare(`SELECT * FROM ${table} WHERE ${column} = ? OR ${column} LIKE ?`).all(template, `${template}:%`);
  const promises = rows("promises", "id");
  const end = Number(promises.find(({ id }) => id === journalEntryId(template, 1))?.timeoutAt);
  const parts = { promises, tasks: rows("tasks", "id"), callbacks: rows("callbacks", "awaiter") };
  db.exec("BEGIN");
  for (const [table, originals] of Object.entries(parts)) {
    const columns = Object.keys(originals[0] ?? {});
    const insert = db.prepare(`INSERT INTO ${table} (${columns}) VALUES (${columns.map(() => "?")})`);
    for (let n = 0; n < count; n++) {
      const id = template.replace(/template$/, `overdue${n}`);
      for (const original of originals) {
        const copied = columns.map((column) => {
          const value = original[column] as string | number | null;
          if (column === "param") return argumentsOf(String(value), `overdue${n}`, due);
          if (column === "timeoutAt" || (column === "timer" && table === "promises"))
            return value === null ? null : Number(value) - end + due;
          return typeof value === "string" ? value.replaceAll(template, id) : value;
        });
        insert.run(...copied);
      }
    }
  }
  db.exec("COMMIT");
  db.close();
}

/** The parameter with this timer's name and end. Journal records have no arguments, and stay unchanged. */
function argumentsOf(param: string, timer_name: string, due: number): string {
  const { data, ...others } = JSON.parse(param);
  const text = Buffer.from(data, "base64").toString();
  const invocation = JSON.parse(text || "{}");
  if (!Array.isArray(invocation.args)) return param;
  invocation.args[0] = { ...invocation.args[0], timer_name, fires_at: new Date(due).toISOString() };
  return JSON.stringify({ ...others, data: Buffer.from(JSON.stringify(invocation)).toString("base64") });
}
