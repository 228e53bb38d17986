/** The server under test: one of the project's two hosts with a movable clock, or a running server at a URL. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startStandaloneServer } from "../../test/support/standalone-server.ts";
import { freePort } from "../../testing/stack/port.ts";
import { type LogLine, type Program, run, until } from "../../testing/stack/program.ts";
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
  const start = () => startStandaloneServer(program, data, port);
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
  const host = new Host(name);
  await host.start();
  return host;
}

class Host implements Subject {
  readonly #name: HostName;
  readonly #data = mkdtempSync(join(tmpdir(), "linearizable-"));
  #earliest = Date.now() + AHEAD;
  #latest = this.#earliest;
  #program: Program | undefined;
  #url = "";
  /** The address at which the clock is set. */
  #clockUrl = "";

  constructor(name: HostName) {
    this.#name = name;
  }

  get earliest(): number {
    return this.#earliest;
  }

  get latest(): number {
    return this.#latest;
  }

  call(kind: string, data: object): Promise<Answer | undefined> {
    return post(this.#url, kind, data).catch(() => undefined);
  }

  readonly move = async (ms: number): Promise<void> => {
    this.#latest += ms;
    const now = this.#latest;
    if (await this.#setClock(now)) this.#earliest = now;
  };

  readonly kill = async (): Promise<void> => {
    const program = this.#program;
    // The object's program cannot pass SIGKILL on, so workerd itself is killed, and the program ends with it.
    const ready = program?.logs().find(({ msg }) => msg === "ready");
    if (this.#name === "object" && typeof ready?.pid === "number") process.kill(ready.pid, "SIGKILL");
    else program?.signal("SIGKILL");
    await program?.exited;
    this.#program = undefined;
  };

  async start(): Promise<void> {
    const { script, args, imports } = HOSTS[this.#name];
    const program = run(script, { args: [...args, "--port", "0", "--data", this.#data], imports });
    this.#program = program;
    const logged = this.#logOf(program);
    this.#url = String((await logged("ready")).url);
    this.#clockUrl = this.#name === "object" ? this.#url + CLOCK_PATH : String((await logged("clock")).url);
    await until("the clock to be set", () => this.#setClock(this.#latest));
    this.#earliest = this.#latest;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
    rmSync(this.#data, { recursive: true, force: true });
  }

  /** Returns a function that waits for the line with a message in a program's log. It throws with the output if the program ends. */
  #logOf(program: Program): (msg: string) => Promise<LogLine> {
    let ended = false;
    void program.exited.then(() => {
      ended = true;
    });
    return (msg) =>
      until(
        `${this.#name}: ${msg}`,
        () => {
          if (ended) throw new Error(`${this.#name} ended: ${program.output()}`);
          return program.logs().find((line) => line.msg === msg);
        },
        120_000,
      );
  }

  /** Resolves with whether the server has taken the time. */
  async #setClock(now: number): Promise<boolean> {
    const response = await fetch(this.#clockUrl, { method: "POST", body: String(now) }).catch(() => undefined);
    await response?.body?.cancel();
    return response?.ok === true;
  }
}

async function post(url: string, kind: string, data: object): Promise<Answer> {
  const head = { corrId: "lab", version: "2026-04-01" };
  const body = JSON.stringify({ kind, head, data });
  const response = await fetch(url, { method: "POST", headers: { "content-type": "application/json" }, body });
  const answer = (await response.json()) as { data: unknown };
  return { status: response.status, data: answer.data };
}
