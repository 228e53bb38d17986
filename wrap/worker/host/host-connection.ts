/** Finds and starts the program hosts of this machine. */
import { spawn } from "node:child_process";
import { createHash, randomUUID } from "node:crypto";
import { existsSync, lstatSync, mkdirSync, readdirSync, rmSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { extname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { OutcomeUnknown } from "../connection/errors.ts";
import { type HostConfig, MAX_MESSAGE } from "./host-config.ts";
import { lineReader } from "./line-reader.ts";

/** A program that outlives its worker. */
export interface HostedProgram extends Omit<HostConfig, "socket"> {
  /** Identifies the deployment: workers of other deployments on this machine do not take over its programs. */
  deployment: string;
}

export interface HostConnection {
  /** The host's name, which is the file name of its socket. */
  host: string;
  socket: Socket;
  /** The host's greeting to a worker that uses the program: its process id, and whether the session is open. */
  hello: { pid?: number; isOpen?: boolean };
  /** Sets the receiver of lines, and first passes it the lines that have already arrived. */
  read(onLine: (line: string) => void): void;
}

const MAIN = fileURLToPath(new URL(`./program-host${extname(import.meta.url)}`, import.meta.url));
/** The longest socket path that every system accepts, in bytes. */
const LONGEST_PATH = 103;
/** How long a host may take to start, and to answer, in milliseconds; and the limit of its heap, in MB. */
const START = 20_000;
const ANSWER = 10_000;
const HEAP = 256;

/** Whether programs can outlive their worker on this machine. */
export function canHost(): boolean {
  if (process.platform === "win32" || !existsSync(MAIN)) return false;
  try {
    return socketOf(nameOf({} as HostedProgram)).length <= LONGEST_PATH;
  } catch {
    return false;
  }
}

/** Connects to a host of the program that a dead worker has left, or starts one. @throws {Error} saying why it does not start */
export async function attachToHost(program: HostedProgram): Promise<HostConnection> {
  const name = nameOf(program);
  const prefix = name.slice(0, name.indexOf(".") + 1);
  for (const file of readdirSync(folder())) {
    if (!file.startsWith(prefix)) continue;
    const free = await connectTo(file, "u").catch((error) => {
      if (error.code === "ECONNREFUSED") rmSync(socketOf(file), { force: true });
    });
    if (free) return free;
  }
  await start(program, name);
  return connectTo(name, "u").catch((error) => {
    // Another connection from this machine was the first to use the new host.
    if (error.isUsed) return attachToHost(program);
    throw error;
  });
}

/** Opens another connection to a host. @throws {OutcomeUnknown} if the host is gone */
export function joinHost(host: string): Promise<HostConnection> {
  const isName = /^[\w-]+\.[\w-]+$/.test(host);
  const connected = isName ? connectTo(host, "j") : Promise.reject(new Error("no host has that name"));
  return connected.catch((error) => {
    throw new OutcomeUnknown("the program that it was sent to has ended, or runs on another machine", { cause: error });
  });
}

/** A unique name for a host; the part before the dot identifies the program. */
function nameOf({ deployment, command, args, env, cwd }: HostedProgram): string {
  const program = createHash("sha256")
    .update(JSON.stringify([deployment, command, args, env, cwd]))
    .digest("hex");
  return `${program.slice(0, 12)}.${randomUUID().slice(0, 8)}`;
}

const socketOf = (host: string) => join(folder(), host);

/** The folder of this user's sockets. @throws {Error} if other users have access to it */
function folder(): string {
  const uid = process.getuid?.();
  const path = join(tmpdir(), `durable-mcp-edge-${uid}`);
  mkdirSync(path, { recursive: true, mode: 0o700 });
  const { uid: owner, mode } = lstatSync(path);
  if (owner !== uid || (mode & 0o170077) !== 0o040000) throw new Error(`${path} is not this user's alone`);
  return path;
}

async function start({ deployment: _, ...program }: HostedProgram, name: string): Promise<void> {
  // The program's environment goes over stdin, because process lists show arguments and environments. Of the worker's
  // environment the host gets only the variable that Node may need to start.
  const { LD_LIBRARY_PATH } = process.env;
  const host = spawn(process.execPath, [`--max-old-space-size=${HEAP}`, "--max-semi-space-size=1", MAIN], {
    detached: true,
    cwd: "/",
    env: LD_LIBRARY_PATH === undefined ? {} : { LD_LIBRARY_PATH },
    stdio: ["pipe", "pipe", "ignore"],
  });
  host.unref();
  const config: HostConfig = { ...program, socket: socketOf(name) };
  host.stdin.on("error", () => {});
  host.stdin.end(JSON.stringify(config));
  const listening = Promise.withResolvers<unknown>();
  host.stdout.once("data", listening.resolve);
  host.once("error", listening.reject);
  host.once("exit", () => listening.reject(new Error("its program host has ended")));
  const timer = setTimeout(() => listening.reject(new Error("its program host does not start")), START);
  await listening.promise.finally(() => clearTimeout(timer));
  host.stdout.destroy();
}

/** `role`: `u` to use the program alone, `j` to join its user. */
async function connectTo(host: string, role: "u" | "j"): Promise<HostConnection> {
  const socket = connect(socketOf(host));
  const first = Promise.withResolvers<string>();
  const early: string[] = [];
  let take = (line: string): void => {
    take = (line) => void early.push(line);
    first.resolve(line);
  };
  const tooLong = () => socket.destroy();
  socket.on(
    "data",
    lineReader(2 * MAX_MESSAGE, (line) => take(line), tooLong),
  );
  socket.on("error", first.reject);
  socket.on("close", () => first.reject(new Error("its program host has ended")));
  socket.write(`${role}\n`);
  // A host that is stopped or hangs never answers.
  const timer = setTimeout(() => first.reject(new Error("its program host does not answer")), ANSWER);
  const line = await first.promise
    .catch((error) => {
      socket.destroy();
      throw error;
    })
    .finally(() => clearTimeout(timer));
  const hello = JSON.parse(line.slice(1));
  if (line[0] === "x") {
    socket.destroy();
    const isUsed = hello.message === undefined;
    throw Object.assign(new Error(hello.message ?? "another worker uses it"), { ...hello, isUsed });
  }
  return {
    host,
    socket,
    hello,
    read(onLine) {
      take = onLine;
      for (const line of early.splice(0)) onLine(line);
    },
  };
}
