/**
 * Jobs from end to end, compared with a peer: FastMCP's tasks on Redis. The same client does the same work on both in turns.
 * Both write each start to disk before they answer: the embedded server with `synchronous = FULL`, Redis with `appendfsync always`.
 */
import { fork } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { execa } from "execa";
import { startEdge } from "../../../cli/launcher/local-edge.ts";
import { startChild } from "../../../cli/process/child.ts";
import { startResonate } from "../../../test/support/resonate.ts";
import { cpuSeconds } from "../../../test/support/usage.ts";
import { freePort } from "../../../testing/stack/port.ts";
import { until, watch } from "../../../testing/stack/program.ts";
import { ownGroup, startWorker } from "../../../testing/stack/worker-process.ts";
import { atLeast, type Figure, figure, type Spread, spreadOf } from "../report/figures.ts";
import type { Bench } from "../setup/bench.ts";
import { ask, MODERN, mcpRequest, toolCall } from "../setup/mcp.ts";
import type { Done, Work } from "./client.ts";

const FOLDER = import.meta.dirname;

/** How the client works: see `client.ts`. */
const CLIENTS = { clients: 16, window: 16, pause: 100 };

/** The approximate length of a turn, and of a measurement of one request, in seconds. */
const TURN = 3;
const ASKED = 2;

/** How many tasks the peer's worker runs at once. */
const PEER_CONCURRENCY = 100;

/** One of the two servers. */
interface Side {
  name: string;
  url: string;
  pids: Record<string, number>;
}

/** The measurements of one server, per round. */
interface Measured {
  jobs: number[];
  polls: number[];
  starts: number[];
  gets: number[];
  /** Milliseconds of CPU time per job, by process. */
  cpu: Record<string, number[]>;
}

export async function measurePeer(bench: Bench, rounds: number): Promise<Figure[]> {
  const python = process.env.PEER_PYTHON || "python3";
  const missing = await whatIsMissing(python);
  if (missing !== undefined) throw new Error(missing);
  await using use = new AsyncDisposableStack();
  const folder = await mkdtemp(join(tmpdir(), "peer-"));
  use.defer(() => rm(folder, { recursive: true, force: true }));
  const archive = forked(use, "archive.ts");
  const [archiveUrl] = (await once(archive, "message")) as [string];
  const client = forked(use, "client.ts");
  const env = { ARCHIVE_URL: archiveUrl };
  const sides = [await startOurs(use, join(folder, "ours"), env), await startPeer(use, python, folder, env)];

  let turn = 0;
  const run = async (side: Side, jobs: number) => {
    const work: Work = { url: side.url, jobs, prefix: `t${turn++}-`, ...CLIENTS };
    client.send(work);
    const [done] = (await once(client, "message")) as [Done];
    if (done.failure !== undefined) throw new Error(`${side.name}: ${done.failure}`);
    return { ...done, rate: jobs / done.seconds };
  };
  const asked = async (side: Side, message: Parameters<typeof mcpRequest>[1], expect: string) => {
    const request = mcpRequest(MODERN, { ...message, tasks: true });
    const loaded = await bench.generator.run({ url: side.url, ...request, connections: 16, seconds: ASKED, expect });
    return loaded.requests / loaded.seconds;
  };
  const complete = async ({ url }: Side) => {
    const { taskId } = await ask(url, { ...toolCall("fetch_once", { name: "asked for" }), tasks: true });
    const get = { method: "tasks/get", params: { taskId }, tasks: true };
    await until("the task to complete", async () => (await ask(url, get)).status === "completed");
    return taskId as string;
  };

  const warm = new Map<Side, { rate: number; taskId: string }>();
  for (const side of sides) {
    await run(side, 300);
    warm.set(side, { rate: (await run(side, 300)).rate, taskId: await complete(side) });
  }
  const measured = new Map(sides.map((side): [Side, Measured] => [side, nothingYet(side)]));
  for (let round = 0; round < rounds; round++) {
    for (const side of round % 2 === 0 ? sides : sides.toReversed()) {
      const { rate: expected, taskId } = warm.get(side) ?? { rate: 100, taskId: "" };
      const { jobs, polls, starts, gets, cpu } = measured.get(side) as Measured;
      const count = Math.ceil(expected * TURN);
      const before = Object.entries(side.pids).map(([name, pid]) => [name, pid, cpuSeconds(pid)] as const);
      const { rate, polls: asks } = await run(side, count);
      for (const [name, pid, used] of before) cpu[name]?.push(((cpuSeconds(pid) - used) / count) * 1_000);
      jobs.push(rate);
      polls.push(asks / count);
      gets.push(await asked(side, { method: "tasks/get", params: { taskId } }, "completed"));
      const name = `s${round}-{n}`;
      starts.push(await asked(side, toolCall("fetch_once", { name }), "taskId"));
      // All started jobs end before the other's turn.
      await run(side, 1);
    }
  }
  return figuresOf(sides, measured);
}

function figuresOf(sides: Side[], measured: Map<Side, Measured>): Figure[] {
  const [ours, peer] = sides.map((side) => measured.get(side)) as [Measured, Measured];
  const ratio = (what: "jobs" | "starts" | "gets"): Spread =>
    spreadOf(ours[what].map((rate, i) => rate / (peer[what][i] ?? Number.NaN)));
  const total = ({ jobs, cpu }: Measured) => jobs.map((_, i) => sumOf(cpu, i));
  return [
    figure("jobs from start to result, as often as the peer", "times", ratio("jobs"), atLeast(4)),
    figure("starts, as often as the peer", "times", ratio("starts")),
    figure("tasks/get, as often as the peer", "times", ratio("gets")),
    ...sides.flatMap((side) => {
      const all = measured.get(side) as Measured;
      const { jobs, polls, starts, gets, cpu } = all;
      return [
        figure(`${side.name}: jobs from start to result`, "a second", spreadOf(jobs)),
        figure(`${side.name}: polls a job`, "", spreadOf(polls)),
        figure(`${side.name}: starts`, "a second", spreadOf(starts)),
        figure(`${side.name}: tasks/get`, "a second", spreadOf(gets)),
        figure(`${side.name}: CPU time a job, all`, "ms", spreadOf(total(all))),
        ...Object.entries(cpu).map(([name, used]) =>
          figure(`${side.name}: CPU time a job, ${name}`, "ms", spreadOf(used)),
        ),
      ];
    }),
  ];
}

const sumOf = (cpu: Measured["cpu"], i: number) =>
  Object.values(cpu).reduce((sum, used) => sum + (used[i] ?? Number.NaN), 0);

const nothingYet = ({ pids }: Side): Measured => ({
  jobs: [],
  polls: [],
  starts: [],
  gets: [],
  cpu: Object.fromEntries(Object.keys(pids).map((name) => [name, []])),
});

async function startOurs(use: AsyncDisposableStack, data: string, env: Record<string, string>): Promise<Side> {
  const resonate = use.use(await startResonate({ own: true, args: ["--data", data] }));
  if (!resonate.program) throw new Error("the embedded server has no process");
  const group = ownGroup();
  const bindings = {
    ...resonate.env,
    ...group.env,
    // Like the peer, it logs no line per request.
    LOG_LEVEL: "warn",
    AUTH_MODE: "none",
    RATE_LIMIT: "0",
    TASK_KEY: "0123456789abcdef0123456789abcdef",
  };
  const edge = use.use(await startEdge({ entry: "lab/bench/peer/fetch-edge.ts", port: 0, bindings }));
  const script = join(FOLDER, "fetch-worker.ts");
  const worker = use.use(await startWorker({ ...resonate.env, ...group.env, ...env }, { script }));
  const pids = { edge: edge.process.pid ?? Number.NaN, Resonate: resonate.program.pid, worker: worker.pid };
  return { name: "here", url: `${edge.url}/mcp`, pids };
}

async function startPeer(
  use: AsyncDisposableStack,
  python: string,
  dir: string,
  more: Record<string, string>,
): Promise<Side> {
  const [redisPort, port] = [await freePort(), await freePort()];
  const settings = ["--appendonly", "yes", "--appendfsync", "always", "--save", ""];
  const address = ["--bind", "127.0.0.1", "--port", String(redisPort), "--dir", dir];
  const start = (command: string, args: string[], env: Record<string, string> = {}) =>
    use.use(watch(startChild(command, args, { env: { ...process.env, ...env }, grace: 5_000 })));
  const redis = start("redis-server", [...address, ...settings]);
  const env = {
    ...more,
    PORT: String(port),
    FASTMCP_DOCKET_URL: `redis://127.0.0.1:${redisPort}/0`,
    FASTMCP_DOCKET_CONCURRENCY: String(PEER_CONCURRENCY),
    FASTMCP_LOG_LEVEL: "WARNING",
  };
  await until("Redis to be ready", () => redis.output().includes("Ready to accept connections"));
  const program = join(FOLDER, "server.py");
  const server = start(python, [program], env);
  await until("the peer's server", () => fetch(`http://127.0.0.1:${port}/`).catch(() => undefined), 60_000);
  const worker = start(python, ["-m", "fastmcp_tasks.worker_cli", "worker", `${program}:mcp`], env);
  await until("the peer's worker", () => worker.output().includes("Starting worker"));
  const pids = { server: server.pid, Redis: redis.pid, worker: worker.pid };
  return { name: "FastMCP with Redis", url: `http://127.0.0.1:${port}/mcp`, pids };
}

/** Describes the requirements that are missing. */
async function whatIsMissing(python: string): Promise<string | undefined> {
  const [redis, fastmcp] = await Promise.all([
    execa("redis-server", ["--version"], { reject: false }),
    execa(python, ["-c", "import fastmcp_tasks"], { reject: false }),
  ]);
  if (redis.failed) return "The peer needs redis-server on the PATH (Debian: redis-server), which is not there.";
  if (fastmcp.failed)
    return `The peer needs a Python with fastmcp[tasks], which ${python} is not. PEER_PYTHON may name another one.`;
  return undefined;
}

function forked(use: AsyncDisposableStack, script: string) {
  const child = fork(join(FOLDER, script), { serialization: "advanced" });
  use.defer(() => {
    child.kill("SIGKILL");
  });
  return child;
}
