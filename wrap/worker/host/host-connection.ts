/** Finds and starts the program hosts of this machine. */
import { spawn } from "node:child_process";
import { createHash, randomUUID } from "node:crypto";
import { existsSync, lstatSync, mkdirSync, readdirSync, rmSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { extname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { OutcomeUnknown } from "./errors.ts";
import { type HostConfig, MAX_MESSAGE_BYTES } from "./host-config.ts";
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

/** The module that the host's process runs. */
const HOST_PROGRAM = fileURLToPath(new URL(`./program-host${extname(import.meta.url)}`, import.meta.url));
/** The maximum length of a socket path that every system accepts. */
const MAX_SOCKET_PATH_BYTES = 103;
/** How long a host may take to start, and to answer, in milliseconds. */
const HOST_START_TIMEOUT_MS = 20_000;
const HOST_ANSWER_TIMEOUT_MS = 10_000;
const MAX_HOST_HEAP_MB = 256;

/** Whether programs can outlive their worker on this machine. */
export function canHost(): boolean {
  if (process.platform === "win32" || !existsSync(HOST_PROGRAM)) return false;
  try {
    return socketOf(nameOf({} as HostedProgram)).length <= MAX_SOCKET_PATH_BYTES;
  } catch {
    return false;
  }
}

/** Why a host does not let a worker use its program. `used`: another worker uses it; `program`: the program does not start. */
type HostRefusalCause = "used" | "program";

/** A host does not let a worker use its program. If the program does not start, it has the fields of the system's error. */
class HostRefusal extends Error {
  override name = "HostRefusal";
  readonly why: HostRefusalCause;
  readonly code?: string;
  readonly syscall?: string;

  constructor({ message, code, syscall }: { message?: string; code?: string; syscall?: string }) {
    super(message ?? "another worker uses it");
    this.why = message === undefined ? "used" : "program";
    if (code !== undefined) this.code = code;
    if (syscall !== undefined) this.syscall = syscall;
  }
}

/** Connects to a host of the program that a dead worker has left, or starts one. @throws {Error} saying why it does not start */
export async function attachToHost(program: HostedProgram): Promise<HostConnection> {
  const name = nameOf(program);
  const prefix = name.slice(0, name.indexOf(".") + 1);
  for (const file of readdirSync(folder())) {
    if (!file.startsWith(prefix)) continue;
    const connection = await connectTo(file, "u").catch((error) => {
      if (error.code === "ECONNREFUSED") rmSync(socketOf(file), { force: true });
    });
    if (connection) return connection;
  }
  await startHost(program, name);
  return connectTo(name, "u").catch((error) => {
    // Another connection from this machine was the first to use the new host.
    if (error instanceof HostRefusal && error.why === "used") return attachToHost(program);
    throw error;
  });
}

/** Opens another connection to a host. @throws {OutcomeUnknown} if the host is gone */
export function joinHost(host: string): Promise<HostConnection> {
  const isName = /^[\w-]+\.[\w-]+$/.test(host);
  const connecting = isName ? connectTo(host, "j") : Promise.reject(new Error("no host has that name"));
  return connecting.catch((error) => {
    throw new OutcomeUnknown("the program that it was sent to has ended, or runs on another machine", { cause: error });
  });
}

/** A unique name for a host; the part before the dot identifies the program. */
function nameOf({ deployment, command, args, env, cwd }: HostedProgram): string {
  const hash = createHash("sha256")
    .update(JSON.stringify([deployment, command, args, env, cwd]))
    .digest("hex");
  return `${hash.slice(0, 12)}.${randomUUID().slice(0, 8)}`;
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

async function startHost({ deployment: _, ...program }: HostedProgram, name: string): Promise<void> {
  // The program's environment goes over stdin, because process lists show arguments and environments. Of the worker's
  // environment the host gets only the variable that Node may need to start.
  const { LD_LIBRARY_PATH } = process.env;
  const host = spawn(
    process.execPath,
    [`--max-old-space-size=${MAX_HOST_HEAP_MB}`, "--max-semi-space-size=1", HOST_PROGRAM],
    {
      detached: true,
      cwd: "/",
      env: LD_LIBRARY_PATH === undefined ? {} : { LD_LIBRARY_PATH },
      stdio: ["pipe", "pipe", "ignore"],
    },
  );
  host.unref();
  const config: HostConfig = { ...program, socket: socketOf(name) };
  host.stdin.on("error", () => {});
  host.stdin.end(JSON.stringify(config));
  const start = Promise.withResolvers<unknown>();
  host.stdout.once("data", start.resolve);
  host.once("error", start.reject);
  host.once("exit", () => start.reject(new Error("its program host has ended")));
  const timer = setTimeout(() => start.reject(new Error("its program host does not start")), HOST_START_TIMEOUT_MS);
  await start.promise.finally(() => clearTimeout(timer));
  host.stdout.destroy();
}

/** `role`: `u` to use the program alone, `j` to join its user. */
async function connectTo(host: string, role: "u" | "j"): Promise<HostConnection> {
  const socket = connect(socketOf(host));
  const first = Promise.withResolvers<string>();
  const earlyLines: string[] = [];
  let receive = (line: string): void => {
    receive = (line) => void earlyLines.push(line);
    first.resolve(line);
  };
  const onTooLong = () => socket.destroy();
  const onData = lineReader(2 * MAX_MESSAGE_BYTES, (line) => receive(line), onTooLong);
  socket.on("data", onData);
  socket.on("error", first.reject);
  socket.on("close", () => first.reject(new Error("its program host has ended")));
  socket.write(`${role}\n`);
  // A host that is stopped or hangs never answers.
  const timer = setTimeout(() => first.reject(new Error("its program host does not answer")), HOST_ANSWER_TIMEOUT_MS);
  const line = await first.promise
    .catch((error) => {
      socket.destroy();
      throw error;
    })
    .finally(() => clearTimeout(timer));
  const hello = JSON.parse(line.slice(1));
  if (line[0] === "x") {
    socket.destroy();
    throw new HostRefusal(hello);
  }
  return {
    host,
    socket,
    hello,
    read(onLine) {
      receive = onLine;
      for (const line of earlyLines.splice(0)) onLine(line);
    },
  };
}
