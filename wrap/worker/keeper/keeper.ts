/**
 * Keeps a wrapped program while its worker is away: a process that owns the program's streams, and a socket at which
 * workers come and go. What the program answers is kept until a worker has written it down; and a request that comes
 * again under the same id, from the next worker, is not sent to the program again.
 *
 * A line says what it is by its first letter. From workers: `u` it uses the program, `j` it joins besides; `m` a message,
 * `k` a request whose answer is kept, `a` the id of one that is written down, `e` the program is to end. To workers: `h`
 * what it finds here, or `x` why there is no program, or will be none; `m` a message, `l` the id of a request whose answer is lost, `s` what
 * the program writes beside, as JSON.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { rmSync } from "node:fs";
import { createServer, type Socket } from "node:net";
import { json } from "node:stream/consumers";
import { type KeeperConfig, MAX_LINE } from "./limits.ts";
import { lineReader } from "./lines.ts";

/** What is kept of answers, in bytes. */
const MAX_KEPT = 64_000_000;
/** How many ids of requests that are over are known, and how many questions wait. */
const MAX_OVER = 10_000;
const MAX_QUESTIONS = 1_000;
/** How long the program has to end by itself, and then by a signal, in milliseconds. */
const GRACE = 2_000;

const RELATED_TASK = "io.modelcontextprotocol/related-task";

type Id = string | number;
interface Message {
  id?: Id;
  method?: string;
  params?: Record<string, unknown> & { _meta?: Record<string, { taskId?: unknown } | undefined> };
  result?: unknown;
}

/** A request under way, or answered and kept. `owner`: who is told of it. */
interface Request {
  owner: Socket | undefined;
  isKept: boolean;
  task: unknown;
  isAnswered?: true;
  answer?: string;
}

/** A request of the program's that nobody has answered. */
interface Question {
  line: string;
  asker: Id | undefined;
  task: unknown;
}

const { socket: path, command, args, env, cwd, keep } = (await json(process.stdin)) as KeeperConfig;
const workers = new Set<Socket>();
const requests = new Map<Id, Request>();
const over = new Set<Id>();
const questions = new Map<Id, Question>();
/** The worker that uses the program. */
let user: Socket | undefined;
let program: ChildProcess | undefined;
let isEnding = false;
let isOver = false;
let keptSize = 0;
/** The request that opened the session, and what the program answered; whether it was told that this has come. */
let opening: Id | undefined;
let session: unknown;
let isOpen = false;
let alone: NodeJS.Timeout | undefined;

const server = createServer((socket) => {
  workers.add(socket);
  clearTimeout(alone);
  const take = (line: string) => fromWorker(socket, line[0], line.slice(1));
  socket.on(
    "data",
    lineReader(2 * MAX_LINE, take, () => socket.destroy()),
  );
  socket.on("error", () => {});
  socket.on("drain", () => program?.stdout?.resume());
  socket.on("close", () => left(socket));
});
server.listen(path, () => process.stdout.write("listening\n"));
// Whoever started it may be gone.
process.stdout.on("error", () => {});
process.on("SIGTERM", end);
waitAlone();

function waitAlone(): void {
  clearTimeout(alone);
  alone = setTimeout(end, keep);
}

function left(socket: Socket): void {
  workers.delete(socket);
  program?.stdout?.resume();
  for (const [id, request] of requests) {
    if (request.owner !== socket) continue;
    request.owner = undefined;
    if (!request.isKept) requests.delete(id);
  }
  if (user === socket) {
    user = undefined;
    // A session that is half opened is of no use to the next worker.
    if (opening !== undefined && !isOpen) end();
  }
  if (workers.size === 0) waitAlone();
  quitWhenDone();
}

function say(socket: Socket | undefined, kind: string, text: string): void {
  if (socket?.writable && !socket.write(`${kind}${text}\n`)) program?.stdout?.pause();
}

// --- from workers -----------------------------------------------------------------------------------------------------

function fromWorker(socket: Socket, kind: string | undefined, text: string): void {
  if (kind === "u") use(socket);
  else if (kind === "j") say(socket, "h", "{}");
  else if (kind === "e") end();
  else if (kind === "a") forget(text);
  else message(socket, text, kind === "k");
}

function use(socket: Socket): void {
  const hello = () => {
    say(socket, "h", JSON.stringify({ pid: process.pid, isOpen }));
    for (const { asker, task, line } of questions.values()) {
      if (asker === undefined && task === undefined) say(socket, "m", line);
    }
  };
  if (user || isEnding || isOver) {
    socket.end("x{}\n");
    return;
  }
  user = socket;
  if (program) {
    hello();
    return;
  }
  program = spawn(command, args, { env, cwd, stdio: "pipe" });
  program.once("spawn", hello);
  program.once("error", (error: NodeJS.ErrnoException) => {
    if (program?.pid !== undefined) return;
    socket.end(`x${JSON.stringify({ message: error.message, code: error.code })}\n`, quit);
  });
  program.stdout?.on("data", lineReader(MAX_LINE, fromProgram, tooLong));
  program.stderr?.on("data", (chunk: Buffer) => say(user, "s", JSON.stringify(chunk.toString("utf8"))));
  program.stdin?.on("error", () => {});
  program.once("close", ended);
}

function message(socket: Socket, text: string, isKept: boolean): void {
  const told = JSON.parse(text) as Message;
  if (!isNews(socket, told, isKept)) return;
  if (program?.stdin?.writable && !program.stdin.write(`${text}\n`)) {
    socket.pause();
    program.stdin.once("drain", () => socket.resume());
  }
  // What a task has asked, whoever asks for its result is told.
  const asksFor = taskOf(told);
  for (const { task, line } of questions.values()) if (task !== undefined && task === asksFor) say(socket, "m", line);
}

/** Whether the program is to get it: not what it has had before, and not what is known here. */
function isNews(socket: Socket, told: Message, isKept: boolean): boolean {
  const { id, method, params } = told;
  if (method === undefined) return questions.delete(id as Id);
  if (method === "notifications/cancelled") forget(params?.requestId as Id);
  if (method === "notifications/initialized") {
    if (isOpen) return false;
    isOpen = true;
  }
  if (id === undefined) return true;
  const known = requests.get(id);
  if (known) again(socket, id, known);
  else if (isEnding || isOver || over.has(id)) say(socket, "l", String(id));
  else if (method === "initialize" && isOpen) {
    say(socket, "m", JSON.stringify({ jsonrpc: "2.0", id, result: session }));
  } else {
    if (method === "initialize") opening = id;
    requests.set(id, { owner: socket, isKept, task: taskOf(told) });
    return true;
  }
  return false;
}

/** The task whose result a request asks for. */
const taskOf = ({ method, params }: Message) => (method === "tasks/result" ? params?.taskId : undefined);

/** A request that was sent before, by a worker that is gone. */
function again(socket: Socket, id: Id, known: Request): void {
  known.owner = socket;
  if (known.answer !== undefined) say(socket, "m", known.answer);
  else if (known.isAnswered || isOver) say(socket, "l", String(id));
  else for (const { asker, line } of questions.values()) if (asker === id) say(socket, "m", line);
}

function forget(id: Id): void {
  keptSize -= requests.get(id)?.answer?.length ?? 0;
  requests.delete(id);
  over.add(id);
  for (const first of over) if (over.size > MAX_OVER) over.delete(first);
  for (const [question, { asker }] of questions) if (asker === id) questions.delete(question);
}

// --- from the program -------------------------------------------------------------------------------------------------

function fromProgram(line: string): void {
  let told: Message;
  try {
    // A program may write anything, null as well.
    told = Object(JSON.parse(line));
  } catch {
    say(user, "m", line);
    return;
  }
  const { id, method, params } = told;
  if (method === undefined) answered(id as Id, told, line);
  else if (id !== undefined) asked(id, params, line);
  else say(requests.get(params?.progressToken as Id)?.owner ?? user, "m", line);
}

function tooLong(): void {
  const message = `it has sent more than ${MAX_LINE} bytes in one message`;
  for (const socket of workers) say(socket, "x", JSON.stringify({ message }));
  end();
}

function answered(id: Id, { result }: Message, line: string): void {
  const request = requests.get(id);
  if (!request) return;
  if (id === opening) session = result;
  say(request.owner, "m", line);
  if (!request.isKept) {
    requests.delete(id);
    return;
  }
  request.isAnswered = true;
  request.answer = line;
  keptSize += line.length;
  for (const first of requests.values()) {
    if (keptSize <= MAX_KEPT) break;
    keptSize -= first.answer?.length ?? 0;
    delete first.answer;
  }
}

/** Nothing says which call asks, unless it is a task: it is told to whoever waits for the only one, and to the user else. */
function asked(id: Id, params: Message["params"], line: string): void {
  const task = params?._meta?.[RELATED_TASK]?.taskId;
  const waiting = [...requests].filter(
    ([, each]) => !each.isAnswered && (task === undefined ? each.isKept : each.task === task),
  );
  const [asker, request] = (waiting.length === 1 && waiting[0]) || [];
  if (questions.size < MAX_QUESTIONS) questions.set(id, { line, asker: task === undefined ? asker : undefined, task });
  say(request ? request.owner : user, "m", line);
}

// --- the end ----------------------------------------------------------------------------------------------------------

/** Ends the program, and then this. */
function end(): void {
  if (isEnding) return;
  isEnding = true;
  if (!program || isOver) quit();
  program.stdin?.end();
  setTimeout(() => program?.kill("SIGTERM"), GRACE);
  setTimeout(() => program?.kill("SIGKILL"), 2 * GRACE);
  // What it has started may hold its streams open.
  setTimeout(quit, 3 * GRACE);
}

/** The program has ended. Answers that nobody has written down are kept for a while. */
function ended(): void {
  isOver = true;
  for (const socket of workers) socket.end();
  quitWhenDone();
}

function quitWhenDone(): void {
  if (isOver && workers.size === 0 && (isEnding || keptSize === 0)) quit();
}

function quit(): never {
  rmSync(path, { force: true });
  process.exit(0);
}
