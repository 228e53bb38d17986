/**
 * `npm run upgrade:load [-- --seconds 20 --callers 20]`: upgrades a deployment from one build of this code to another under load.
 * Callers start timers of a second and wait for them, one after another, while the workers are replaced one by one, back and forth,
 * so that workers of both builds run side by side; then the edge and the server are replaced. Prints, for the times before and
 * during this, how long starts took, and how long waits exceeded the second, at p50 and p99. A refused call is repeated, as its
 * error says, and counts with the time of all its tries. Exits with 1 if a job is lost.
 */
import { randomBytes } from "node:crypto";
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { callerAt } from "../../test/auth/support.ts";
import { currentClient } from "../../test/support/clients.ts";
import { freePort } from "../../testing/stack/port.ts";
import type { Program } from "../../testing/stack/program.ts";
import { type Build, nextBuild, type Part, thisBuild } from "./builds.ts";

const { values } = parseArgs({
  options: { seconds: { type: "string", default: "20" }, callers: { type: "string", default: "20" } },
});
const [seconds, callers] = [Number(values.seconds), Number(values.callers)];

const TIMER = 1;

interface Phase {
  name: string;
  starts: number[];
  waits: number[];
  repeated: number;
}

/** One process of the deployment, which another build can replace at the same address. */
interface Place {
  part: Part;
  port: number;
  data: string;
  build: Build;
  program: Program;
}

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
const newPhase = (name: string): Phase => ({ name, starts: [], waits: [], repeated: 0 });

await using parts = new AsyncDisposableStack();
const folder = await mkdtemp(join(tmpdir(), "upgrade-"));
parts.defer(() => rm(folder, { recursive: true, force: true }));
const [before, next] = [await thisBuild(), await nextBuild(join(folder, "next"))];
const serverPort = await freePort();
const deployment = {
  RESONATE_URL: `http://127.0.0.1:${serverPort}`,
  RESONATE_TOKEN: "",
  RESONATE_GROUP: "upgrade",
  RESONATE_NAMESPACE: "upgrade/",
};
const environments: Record<Part, Record<string, string>> = {
  server: {},
  worker: { ...deployment, DRAIN_SECONDS: "5", LEASE_SECONDS: "5" },
  edge: {
    ...deployment,
    AUTH_MODE: "none",
    ALLOWED_HOSTS: "127.0.0.1,localhost",
    TASK_KEY: randomBytes(32).toString("hex"),
    RATE_LIMIT: "0",
    WAIT_SECONDS: "45",
  },
};

async function start(part: Part, port: number): Promise<Place> {
  const data = join(folder, part);
  await mkdir(data, { recursive: true });
  const program = await before.start(part, { port, data, env: environments[part] });
  const place = { part, port, data, build: before, program };
  parts.defer(() => place.program[Symbol.asyncDispose]());
  return place;
}

/** Ends a process as a deployment does, and starts the one of the other build in its place. */
async function replace(place: Place, build: Build): Promise<void> {
  place.program.signal("SIGTERM");
  await place.program.exited;
  const { part, port, data } = place;
  place.program = await build.start(part, { port, data, env: environments[part] });
  place.build = build;
}

const server = await start("server", serverPort);
const workers = [await start("worker", await freePort()), await start("worker", await freePort())];
const edge = await start("edge", await freePort());
const url = `http://127.0.0.1:${edge.port}/mcp`;

const caller = callerAt(url, "");
const started: string[] = [];
let phase = newPhase("warming up");
let isOver = false;

/** Calls a tool until it answers; resolves with the answer, and the milliseconds of all tries. */
async function call(name: string, args: object) {
  const began = performance.now();
  const of = phase;
  for (;;) {
    // oxlint-disable-next-line typescript/no-explicit-any -- the shapes of the tools' answers are known
    const answer: any = await caller.call(name, args).catch(() => undefined);
    if (answer) return { answer, ms: performance.now() - began, of };
    of.repeated += 1;
    await pause(100);
  }
}

async function load(id: number): Promise<void> {
  for (let n = 0; !isOver; n++) {
    const timer_name = `load ${id} ${n}`;
    const start = await call("set_timer", { timer_name, seconds: TIMER });
    start.of.starts.push(start.ms);
    const job = start.answer.job_name;
    started.push(job);
    const due = performance.now() + TIMER * 1_000;
    let of = phase;
    for (let isDone = false; !isDone;) {
      const wait = await call("await_result", { job_names: [job] });
      of = wait.of;
      isDone = job in wait.answer.results;
    }
    of.waits.push(performance.now() - due);
  }
}

const phases: Phase[] = [];
const enter = (name: string) => {
  phase = newPhase(name);
  phases.push(phase);
};

const loads = Array.from({ length: callers }, (_, id) => load(id));
await pause(5_000);
enter("before");
await pause(seconds * 1_000);
enter("workers of both builds");
for (const end = Date.now() + seconds * 1_000; Date.now() < end || workers.some(({ build }) => build !== next);) {
  for (const worker of workers) {
    await replace(worker, worker.build === next ? before : next);
    await pause(1_000);
  }
}
for (const place of [edge, server]) {
  enter(`${place.part} replaced`);
  await replace(place, next);
  await pause(Math.max(seconds * 500, 5_000));
}
enter("after");
await pause(seconds * 500);
isOver = true;
await Promise.all(loads);

const at = (times: number[], part: number) => {
  const sorted = times.toSorted((a, b) => a - b);
  return `${Math.round(sorted[Math.min(Math.floor(sorted.length * part), sorted.length - 1)] ?? Number.NaN)} ms`;
};
for (const { name, starts, waits, repeated } of phases)
  console.log(
    `${name}: ${starts.length} starts, p50 ${at(starts, 0.5)}, p99 ${at(starts, 0.99)}; ` +
      `${waits.length} waits, p50 ${at(waits, 0.5)}, p99 ${at(waits, 0.99)}; ${repeated} calls repeated`,
  );
let lost = 0;
for (let i = 0; i < started.length; i += 50) {
  const { statuses } = await caller.call("probe_status", { job_names: started.slice(i, i + 50) });
  lost += statuses.filter(({ status }: { status: string }) => status !== "complete").length;
}
await using client = await currentClient.connect(url);
const version = client.serverInfo?.version;
console.log(`${started.length} jobs, ${lost} not complete; the edge has version ${version}`);
process.exitCode = lost > 0 || version !== next.version ? 1 : 0;
