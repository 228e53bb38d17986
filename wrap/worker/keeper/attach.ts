/** Where the keepers of this machine's programs are found, and how one is started. */
import { spawn } from "node:child_process";
import { createHash, randomUUID } from "node:crypto";
import { existsSync, lstatSync, mkdirSync, readdirSync, rmSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { extname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { Gone } from "../errors.ts";
import { type KeeperConfig, MAX_LINE } from "./limits.ts";
import { lineReader } from "./lines.ts";

/** A program that is to be kept. */
export interface KeptProgram extends Omit<KeeperConfig, "socket"> {
  /** What tells the deployment from others on this machine: their workers do not take over its programs. */
  deployment: string;
}

/** A connection to a keeper. */
export interface Attached {
  keeper: string;
  socket: Socket;
  /** What a keeper says first of a program that is used: its own process, and whether the session is open. */
  hello: { pid?: number; isOpen?: boolean };
  /** Sets who gets the lines from now on, those that came meanwhile first. */
  read(onLine: (line: string) => void): void;
}

const MAIN = fileURLToPath(new URL(`./keeper${extname(import.meta.url)}`, import.meta.url));
/** The longest path of a socket, in bytes, that every system takes. */
const LONGEST_PATH = 103;
/** How long a keeper may take to start, and to answer, in milliseconds; and how much memory its heap may take, in MB. */
const START = 20_000;
const ANSWER = 10_000;
const HEAP = 256;

/** Whether a program can be kept here; where it cannot, it ends with its worker. */
export function canKeep(): boolean {
  if (process.platform === "win32" || !existsSync(MAIN)) return false;
  try {
    return socketOf(nameOf({} as KeptProgram)).length <= LONGEST_PATH;
  } catch {
    return false;
  }
}

/** The program, from the keeper that a dead worker has left, or started anew. @throws {Error} saying why it does not start */
export async function attach(program: KeptProgram): Promise<Attached> {
  const name = nameOf(program);
  const kin = name.slice(0, name.indexOf("."));
  for (const file of readdirSync(folder())) {
    if (!file.startsWith(`${kin}.`)) continue;
    const free = await greet(file, "u").catch((error) => {
      if (error.code === "ECONNREFUSED") rmSync(socketOf(file), { force: true });
    });
    if (free) return free;
  }
  await start(program, name);
  return greet(name, "u");
}

/** Another connection to a keeper. @throws {Gone} when there is none */
export function joined(keeper: string): Promise<Attached> {
  const isName = /^[\w-]+\.[\w-]+$/.test(keeper);
  const greeted = isName ? greet(keeper, "j") : Promise.reject(new Error("no keeper has that name"));
  return greeted.catch((error) => {
    throw new Gone("the program that it was sent to has ended, or runs on another machine", { cause: error });
  });
}

/** A name that no other keeper has: what stands before the point is the program's. */
function nameOf({ deployment, command, args, env, cwd }: KeptProgram): string {
  const program = createHash("sha256")
    .update(JSON.stringify([deployment, command, args, env, cwd]))
    .digest("hex");
  return `${program.slice(0, 12)}.${randomUUID().slice(0, 8)}`;
}

const socketOf = (keeper: string) => join(folder(), keeper);

/** A folder of this user's own. @throws {Error} when it is not */
function folder(): string {
  const uid = process.getuid?.();
  const path = join(tmpdir(), `durable-mcp-edge-${uid}`);
  mkdirSync(path, { recursive: true, mode: 0o700 });
  const { uid: owner, mode } = lstatSync(path);
  if (owner !== uid || (mode & 0o170077) !== 0o040000) throw new Error(`${path} is not this user's alone`);
  return path;
}

async function start({ deployment: _, ...program }: KeptProgram, name: string): Promise<void> {
  // What is the program's, secrets as well, is in no list of processes; and of the worker's environment it gets what Node
  // may need to start.
  const { LD_LIBRARY_PATH } = process.env;
  const keeper = spawn(process.execPath, [`--max-old-space-size=${HEAP}`, MAIN], {
    detached: true,
    cwd: "/",
    env: LD_LIBRARY_PATH === undefined ? {} : { LD_LIBRARY_PATH },
    stdio: ["pipe", "pipe", "ignore"],
  });
  keeper.unref();
  const config: KeeperConfig = { ...program, socket: socketOf(name) };
  keeper.stdin.on("error", () => {});
  keeper.stdin.end(JSON.stringify(config));
  const listening = Promise.withResolvers<unknown>();
  keeper.stdout.once("data", listening.resolve);
  keeper.once("error", listening.reject);
  keeper.once("exit", () => listening.reject(new Error("its keeper has ended")));
  const timer = setTimeout(() => listening.reject(new Error("its keeper does not start")), START);
  await listening.promise.finally(() => clearTimeout(timer));
  keeper.stdout.destroy();
}

async function greet(keeper: string, kind: "u" | "j"): Promise<Attached> {
  const socket = connect(socketOf(keeper));
  const first = Promise.withResolvers<string>();
  const early: string[] = [];
  let take = (line: string): void => {
    take = (line) => void early.push(line);
    first.resolve(line);
  };
  socket.on(
    "data",
    lineReader(
      2 * MAX_LINE,
      (line) => take(line),
      () => socket.destroy(),
    ),
  );
  socket.on("error", first.reject);
  socket.on("close", () => first.reject(new Error("its keeper has ended")));
  socket.write(`${kind}\n`);
  // One that is stopped, or hangs, is as good as none.
  const timer = setTimeout(() => first.reject(new Error("its keeper does not answer")), ANSWER);
  const line = await first.promise
    .catch((error) => {
      socket.destroy();
      throw error;
    })
    .finally(() => clearTimeout(timer));
  const said = JSON.parse(line.slice(1));
  if (line[0] === "x") {
    socket.destroy();
    throw Object.assign(new Error(said.message ?? "another worker uses it"), said);
  }
  return {
    keeper,
    socket,
    hello: said,
    read(onLine) {
      take = onLine;
      for (const line of early.splice(0)) onLine(line);
    },
  };
}
