/**
 * The capacity of one Resonate server: the embedded one in a Node process and in a Durable Object, both with state on disk,
 * and the standalone one if `RESONATE_BIN` names its program. Requests come from this process, over 16 connections.
 */
import { randomUUID } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Pool } from "undici";
import { cpuSeconds } from "../../../test/support/usage.ts";
import { freePort } from "../../../testing/stack/port.ts";
import { run, until } from "../../../testing/stack/program.ts";
import { exactly, type Figure, figure, spreadOf } from "../report/figures.ts";

const CONNECTIONS = 16;
/** The length of each measurement, in seconds, and the number of rounds. */
const SECONDS = 1;
const ROUNDS = 3;

interface Host extends AsyncDisposable {
  name: string;
  url: string;
  pid: number;
}

export async function measureHosts(): Promise<Figure[]> {
  const figures: Figure[] = [];
  for (const start of [
    () => embedded("Node process", "server/node/process.ts"),
    () => embedded("Durable Object", "test/support/object/object-process.ts"),
    ...(process.env.RESONATE_BIN ? [() => real(process.env.RESONATE_BIN ?? "")] : []),
  ]) {
    await using host = await start();
    figures.push(...(await measure(host)));
  }
  return figures;
}

async function embedded(name: string, script: string): Promise<Host> {
  const data = await mkdtemp(join(tmpdir(), "bench-host-"));
  const program = run(script, { args: ["--port", "0", "--data", data] });
  const ready = await until(`the ${name}`, () => program.logs().find(({ msg }) => msg === "ready"));
  return {
    name,
    url: String(ready.url),
    pid: Number(ready.pid) || program.pid,
    async [Symbol.asyncDispose]() {
      await program[Symbol.asyncDispose]();
      await rm(data, { recursive: true, force: true });
    },
  };
}

/** The standalone server with an SQLite file, in its default configuration. */
async function real(binary: string): Promise<Host> {
  const { execa } = await import("execa");
  const cwd = await mkdtemp(join(tmpdir(), "bench-host-"));
  const port = await freePort();
  const args = ["serve", "--level", "warn", "--server-bind", "127.0.0.1", "--server-port", String(port)];
  const program = execa(binary, [...args, "--observability-metrics-port", "0"], { cwd, reject: false });
  const url = `http://127.0.0.1:${port}`;
  await until("the standalone server", async () => (await fetch(`${url}/ready`).catch(() => undefined))?.ok);
  return {
    name: "real server, SQLite",
    url,
    pid: program.pid ?? 0,
    async [Symbol.asyncDispose]() {
      program.kill();
      await program;
      await rm(cwd, { recursive: true, force: true });
    },
  };
}

async function measure({ name, url, pid }: Host): Promise<Figure[]> {
  await using pool = closing(new Pool(url, { connections: CONNECTIONS }));
  const call = async (kind: string, data: object) => {
    const body = JSON.stringify({ kind, head: { corrId: "1", version: "2026-04-01" }, data });
    const headers = { "content-type": "application/json" };
    const response = await pool.request({ method: "POST", path: "/", headers, body });
    // oxlint-disable-next-line typescript/no-explicit-any -- the shape depends on the request
    const { data: answer } = (await response.body.json()) as any;
    if (response.statusCode !== 200) throw new Error(`${kind}: ${response.statusCode} ${JSON.stringify(answer)}`);
    return answer;
  };
  const created = (id: string, tags: object = {}) => ({
    id,
    timeoutAt: Date.now() + 3_600_000,
    param: { data: "e30=" },
    tags: { "resonate:origin": id, "resonate:branch": id, "resonate:parent": id, "resonate:scope": "global", ...tags },
  });
  const value = { data: "e30=" };
  const idle = cpuSeconds(pid);
  await call("promise.create", created("read"));
  const first = exactly((cpuSeconds(pid) - idle) * 1_000);
  const read = () => call("promise.get", { id: "read" });
  const job = async () => {
    const id = randomUUID();
    const action = { kind: "promise.create", data: created(id, { "resonate:target": "poll://any@bench" }) };
    const head = { corrId: "1", version: "2026-04-01" };
    const { task } = await call("task.create", { pid: "bench", ttl: 60_000, action: { ...action, head } });
    const end = { kind: "promise.settle", head, data: { id, state: "resolved", value } };
    await call("task.fulfill", { id, version: task.version, action: end });
  };
  const waiting = async () => {
    const id = randomUUID();
    await call("promise.create", created(id));
    await call("promise.register_listener", { awaited: id, address: "poll://uni@bench/1" });
    await call("promise.settle", { id, state: "resolved", value });
  };
  const figures = [figure(`${name}: CPU time of the first request`, "ms", first)];
  for (const [what, work] of [
    ["reads", read],
    ["jobs, of two requests", job],
    ["waits, of three requests", waiting],
  ] as const) {
    const rates: number[] = [];
    const cpu: number[] = [];
    for (let round = 0; round < ROUNDS; round++) {
      const before = cpuSeconds(pid);
      const done = await forAWhile(work);
      rates.push(done / SECONDS);
      cpu.push(((cpuSeconds(pid) - before) / done) * 1e6);
    }
    figures.push(figure(`${name}: ${what}`, "a second", spreadOf(rates)));
    figures.push(figure(`${name}: CPU time of each`, "µs", spreadOf(cpu)));
  }
  return figures;
}

/** The rate of an operation in one measurement. */
async function forAWhile(work: () => Promise<unknown>): Promise<number> {
  const end = performance.now() + SECONDS * 1_000;
  let done = 0;
  await Promise.all(
    Array.from({ length: CONNECTIONS }, async () => {
      while (performance.now() < end) {
        await work();
        done += 1;
      }
    }),
  );
  return done;
}

const closing = (pool: Pool) => Object.assign(pool, { [Symbol.asyncDispose]: () => pool.destroy() });
