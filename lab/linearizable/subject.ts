/** The server under test: one of the project's two hosts with a movable clock, or a running server at a URL. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort } from "../../testing/stack/port.ts";
import { type Program, run, until } from "../../testing/stack/program.ts";
import { startRealServer } from "../servers/real-server.ts";
import { CLOCK_PATH } from "./clock/held-date.ts";

export interface Answer {
  status: number;
  data: unknown;
}

export interface Subject extends AsyncDisposable {
  /** Makes a request; undefined if the server was killed before it answered. */
  call(kind: string, data: object): Promise<Answer | undefined>;
  /** Bounds of the server's clock, in milliseconds since the epoch. */
  readonly earliest: number;
  readonly latest: number;
  /** Moves the clock by `ms` milliseconds; undefined if the server uses the machine's clock. */
  readonly move: ((ms: number) => Promise<void>) | undefined;
  /** Kills the server with SIGKILL and resolves when it has ended; undefined for a server at a URL. */
  readonly kill: (() => Promise<void>) | undefined;
  /** Starts a killed server on the same data. */
  start(): Promise<void>;
}

/** A server that is already running. */
export function givenServer(url: string): Subject {
  return {
    call: (kind, data) => post(url, kind, data),
    get earliest() {
      return Date.now();
    },
    get latest() {
      return Date.now();
    },
    move: undefined,
    kill: undefined,
    start: async () => {},
    [Symbol.asyncDispose]: async () => {},
  };
}

/** A release of Resonate's own server on a new SQLite file. It uses the machine's clock. */
export async function startRelease(program: string): Promise<Subject> {
  const data = mkdtempSync(join(tmpdir(), "linearizable-"));
  const port = await freePort();
  const start = () => startRealServer(program, data, port);
  let server = await start();
  const machineClock = givenServer(server.url);
  return Object.assign(machineClock, {
    call: (kind: string, request: object) => post(server.url, kind, request).catch(() => undefined),
    kill: () => server[Symbol.asyncDispose](),
    async start() {
      server = await start();
    },
    async [Symbol.asyncDispose]() {
      await server[Symbol.asyncDispose]();
      rmSync(data, { recursive: true, force: true });
    },
  });
}

const HOSTS = {
  embedded: { script: "server/node/process.ts", args: [], imports: [join(import.meta.dirname, "clock/node.ts")] },
  object: {
    script: "test/support/object/object-process.ts",
    args: ["--worker", join(import.meta.dirname, "clock/object-worker.ts")],
    imports: [],
  },
};

export type HostName = keyof typeof HOSTS;
export const isHostName = (name: string): name is HostName => Object.hasOwn(HOSTS, name);

/** How far the clock starts ahead of the machine's, in milliseconds, so that the platform fires no alarm by itself. */
const AHEAD = 3_600_000;

/** Starts a host of the project on a new directory. */
export async function startHost(name: HostName): Promise<Subject> {
  const data = mkdtempSync(join(tmpdir(), "linearizable-"));
  let earliest = Date.now() + AHEAD;
  let latest = earliest;
  let program: Program | undefined;
  let url = "";
  let clock = "";

  const tell = async (now: number) => {
    const response = await fetch(clock, { method: "POST", body: String(now) }).catch(() => undefined);
    await response?.body?.cancel();
    return response?.ok === true;
  };

  const kill = async () => {
    // The object's program cannot pass SIGKILL on, so workerd itself is killed, and the program ends with it.
    const ready = program?.logs().find(({ msg }) => msg === "ready");
    if (name === "object" && typeof ready?.pid === "number") process.kill(ready.pid, "SIGKILL");
    else program?.signal("SIGKILL");
    await program?.exited;
    program = undefined;
  };

  const start = async () => {
    const { script, args, imports } = HOSTS[name];
    const started = run(script, { args: [...args, "--port", "0", "--data", data], imports });
    program = started;
    let ended = false;
    void started.exited.then(() => {
      ended = true;
    });
    const logged = (msg: string) =>
      until(
        `${name}: ${msg}`,
        () => {
          if (ended) throw new Error(`${name} ended: ${started.output()}`);
          return started.logs().find((line) => line.msg === msg);
        },
        120_000,
      );
    url = String((await logged("ready")).url);
    clock = name === "object" ? url + CLOCK_PATH : String((await logged("clock")).url);
    await until("the clock to be set", () => tell(latest));
    earliest = latest;
  };

  await start();
  return {
    call: (kind, data) => post(url, kind, data).catch(() => undefined),
    get earliest() {
      return earliest;
    },
    get latest() {
      return latest;
    },
    async move(ms) {
      latest += ms;
      const now = latest;
      if (await tell(now)) earliest = now;
    },
    kill,
    start,
    async [Symbol.asyncDispose]() {
      await kill();
      rmSync(data, { recursive: true, force: true });
    },
  };
}

async function post(url: string, kind: string, data: object): Promise<Answer> {
  const head = { corrId: "lab", version: "2026-04-01" };
  const body = JSON.stringify({ kind, head, data });
  const response = await fetch(url, { method: "POST", headers: { "content-type": "application/json" }, body });
  const answer = (await response.json()) as { data: unknown };
  return { status: response.status, data: answer.data };
}
