/**
 * Puts many jobs in flight and many clients on the wait, and tells what that took.
 *
 *   npm run load -- [--timers 10000] [--gatherings 2000] [--clients 500] [--workers 2] [--hold 120] [--spread 60]
 *                   [--json .build/load.json] [--resonate-pid PID]
 *   npm run load -- --hostile [--seconds 60]
 *   npm run load -- --sleepers 1000000 [--hours 24] [--rest 60] [--seconds 120] [--rate 20]
 *                   (--sqlite FILE | --postgres URL --database-pid PID) --resonate-pid PID --metrics-url URL
 *   npm run load -- --burst [--timers 2000] [--overdue 50000]
 *
 * The jobs are kept by an embedded Resonate with its state on disk, or by the server at RESONATE_URL, whose memory is
 * told when its process is named. Needs Linux. Ends with 0 when every job completed, none of them early.
 *
 * With `--hostile`: ten ordinary callers at two edges, for so many seconds alone and then beside one who asks for all that
 * he may. Ends with 0 when nothing of theirs failed.
 *
 * With `--sleepers`: so many timers, due over the next hours, are written into the database of the server 0.9.8 at
 * RESONATE_URL, copies of one that went through the edge; then it is at rest with them, and has mixed traffic. Tells what
 * each process used, and how late timers were. Ends with 0 when every answer and every timer was as it had to be.
 * With `--burst`: so many timers that are due at one moment, and such that fell due while the embedded server was down,
 * beside other timers and looks at them.
 */
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { cpus, loadavg, tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { parseArgs } from "node:util";
import { quantile } from "simple-statistics";
import { runBurst } from "./burst.ts";
import { runHostile } from "./hostile.ts";
import { type LoadResult, runLoad } from "./load.ts";
import type { Database } from "./plant.ts";
import { runSleepers } from "./sleepers.ts";

const number = (value: number) => ({ type: "string", default: String(value) }) as const;
const { values } = parseArgs({
  options: {
    timers: number(10_000),
    gatherings: number(2_000),
    clients: number(500),
    workers: number(2),
    hold: number(120),
    spread: number(60),
    json: { type: "string", default: ".build/load.json" },
    "resonate-pid": { type: "string" },
    hostile: { type: "boolean", default: false },
    seconds: { type: "string" },
    sleepers: { type: "string" },
    hours: number(24),
    rest: number(60),
    rate: number(20),
    sqlite: { type: "string" },
    postgres: { type: "string" },
    "database-pid": { type: "string" },
    "metrics-url": { type: "string" },
    burst: { type: "boolean", default: false },
    overdue: number(50_000),
  },
});
const { json, burst, overdue, "resonate-pid": pid, hostile, seconds: length, sleepers, ...others } = values;
const {
  hours,
  rest,
  rate,
  sqlite,
  postgres,
  "database-pid": databasePid,
  "metrics-url": metricsUrl,
  ...sizes
} = others;
if (sleepers !== undefined) {
  const database: Database | undefined =
    sqlite !== undefined ? { sqlite } : postgres !== undefined ? { postgres } : undefined;
  if (!process.env.RESONATE_URL || !database || pid === undefined || metricsUrl === undefined)
    throw new Error("RESONATE_URL, --sqlite or --postgres, --resonate-pid and --metrics-url name the server");
  const result = await runSleepers({
    sleepers: Number(sleepers),
    hours: Number(hours),
    rest: Number(rest),
    seconds: Number(length ?? 120),
    rate: Number(rate),
    database,
    resonatePid: Number(pid),
    databasePid: databasePid === undefined ? undefined : Number(databasePid),
    metricsUrl,
    say: console.log,
  });
  console.table(
    Object.fromEntries(
      Object.entries(result.usage).map(([name, used]) => [
        name,
        Object.fromEntries(Object.entries(used).map(([what, value]) => [what, round(value)])),
      ]),
    ),
  );
  const { messages } = result;
  console.log(`Messages a minute: ${round(messages.rest)} at rest, ${round(messages.traffic)} under traffic`);
  console.log(`${result.due} sleepers fell due. Milliseconds:`);
  console.table(
    Object.fromEntries(
      Object.entries(result.latencies).map(([what, list]) => [
        what,
        list.length > 0
          ? { samples: list.length, p50: round(quantile(list, 0.5)), p99: round(quantile(list, 0.99)) }
          : {},
      ]),
    ),
  );
  for (const what of result.wrong.slice(0, 10)) console.log(`Wrong: ${what}`);
  process.exit(result.wrong.length === 0 ? 0 : 1);
}
if (burst) {
  const data = await mkdtemp(join(tmpdir(), "burst-"));
  const timers = process.argv.includes("--timers") ? Number(values.timers) : 2_000;
  try {
    const workers = Number(values.workers);
    const { through, cpu, ...lists } = await runBurst({
      timers,
      overdue: Number(overdue),
      workers,
      data,
      say: console.log,
    });
    console.log(`${overdue} that were overdue: through in ${through.toFixed(1)} s`);
    console.log("CPU time for each of them, in milliseconds:", cpu);
    console.table(
      Object.fromEntries(
        Object.entries(lists).map(([what, list]) => [
          what,
          {
            samples: list.length,
            p50: round(quantile(list, 0.5)),
            p99: round(quantile(list, 0.99)),
            most: round(Math.max(...list)),
          },
        ]),
      ),
    );
  } finally {
    await rm(data, { recursive: true, force: true });
  }
  process.exit(0);
}
if (hostile) {
  const {
    alone,
    beside,
    failed,
    hostile: answered,
  } = await runHostile({ seconds: Number(length ?? 60), say: console.log });
  const row = (list: number[] = []) => ({
    samples: list.length,
    p50: round(quantile(list, 0.5)),
    p99: round(quantile(list, 0.99)),
  });
  const rows = Object.keys(alone).map((what) => {
    const [one, other] = [row(alone[what]), row(beside[what])];
    return [
      what,
      {
        samples: `${one.samples}, ${other.samples}`,
        alone: `${one.p50}, ${one.p99}`,
        beside: `${other.p50}, ${other.p99}`,
      },
    ];
  });
  console.log("Milliseconds: p50, p99");
  console.table(Object.fromEntries(rows));
  console.log("What the hostile one was answered");
  console.table(answered);
  for (const what of failed.slice(0, 10)) console.log(`Failed: ${what}`);
  process.exit(failed.length === 0 ? 0 : 1);
}
const options = Object.fromEntries(Object.entries(sizes).map(([name, text]) => [name, Number(text)])) as {
  [Name in keyof typeof sizes]: number;
};

const before = loadavg()[0];
const data = await mkdtemp(join(tmpdir(), "load-"));
let result: LoadResult;
try {
  result = await runLoad({
    ...options,
    data,
    resonatePid: pid === undefined ? undefined : Number(pid),
    say: console.log,
  });
} finally {
  await rm(data, { recursive: true, force: true });
}

const { jobs, complete, mostInFlight, timersEarly, latencies, memory, seconds } = result;
const milliseconds = Object.fromEntries(
  Object.entries(latencies).map(([what, list]) => [
    what,
    { samples: list.length, p50: round(quantile(list, 0.5)), p99: round(quantile(list, 0.99)) },
  ]),
);
const machine = { cpus: `${cpus().length} × ${cpus()[0]?.model.trim()}`, node: process.version, loadBefore: before };
const server = process.env.RESONATE_URL === undefined ? "embedded, state on disk" : "the one at RESONATE_URL";
console.log(`\n${complete} of ${jobs} jobs complete, ${mostInFlight} at once; Resonate: ${server}`);
console.log("Milliseconds");
console.table(milliseconds);
console.log("Memory (MB)");
console.table(memory);
await mkdir(dirname(json), { recursive: true });
const run = { options, server, machine, jobs, complete, mostInFlight, timersEarly };
await writeFile(json, JSON.stringify({ ...run, milliseconds, memory, seconds }, null, 2));
console.log(`Written to ${json}`);
process.exit(complete === options.timers + options.gatherings && jobs === complete && timersEarly === 0 ? 0 : 1);

function round(ms: number): number {
  return Math.round(ms * 10) / 10;
}
