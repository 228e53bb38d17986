/**
 * The process that runs a wrapped program, so that the program outlives its worker. It owns the program's streams, and workers
 * connect to its socket. It stores each answer until a worker has recorded it. If the next worker sends a request again under the
 * same id, the program does not get it a second time.
 *
 * The first letter of a line is its type. From workers: `u` use the program, `j` join its user, `m` a message, `k` a request whose
 * answer is to be stored, `a` the id of a request whose answer is recorded, `e` end the program. To workers: `h` the host's state,
 * `x` why the program is not available, `m` a message, `r` an answer after the id of its request, `l` the id of a request whose answer is lost, `s` a chunk of stderr as JSON.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { rmSync } from "node:fs";
import { createServer, type Socket } from "node:net";
import { json } from "node:stream/consumers";
import { jsonOf, parseExact } from "../../../core/resonate/index.ts";
import { type HostConfig, MAX_MESSAGE_BYTES, tooLongError } from "./host-config.ts";
import { lineReader } from "./line-reader.ts";
import { ProgramIds, UNKNOWN_ID } from "./program-ids.ts";

/** The maximum length of all stored answers together. */
const MAX_STORED_CHARACTERS = 64_000_000;
/** The maximum numbers of remembered ids of finished requests, and of open questions. */
const MAX_FINISHED_IDS = 10_000;
const MAX_QUESTIONS = 1_000;
/** How long the program may take to exit, and then to react to a signal, in milliseconds. */
const EXIT_TIMEOUT_MS = 2_000;

const RELATED_TASK = "io.modelcontextprotocol/related-task";

type Id = string | number;
interface Message {
  id?: Id;
  method?: string;
  params?: Record<string, unknown> & { _meta?: Record<string, { taskId?: unknown } | undefined> };
  result?: unknown;
  error?: unknown;
}

/** An open request, or one whose answer is stored. */
interface Request {
  /** The worker that gets the answer. */
  owner: Socket | undefined;
  /** Whether the answer is stored until a worker has recorded it. */
  isRecoverable: boolean;
  task: unknown;
  isAnswered?: true;
  answer?: string;
}

/** An unanswered request of the program. */
interface Question {
  line: string;
  asker: Id | undefined;
  task: unknown;
}

const { socket: path, command, args, env, cwd, keep } = (await json(process.stdin)) as HostConfig;
const workers = new Set<Socket>();
const requests = new Map<Id, Request>();
const finishedIds = new Set<Id>();
const ids = new ProgramIds();
const questions = new Map<Id, Question>();
/** The worker that uses the program. */
let user: Socket | undefined;
let program: ChildProcess | undefined;
let isEnding = false;
let hasExited = false;
let storedCharacters = 0;
/** The id of the request that opened the session, the program's answer, and whether a worker has confirmed the session as open. */
let opening: Id | undefined;
let session: unknown;
let isOpen = false;
let idleTimer: NodeJS.Timeout | undefined;

const server = createServer((socket) => {
  workers.add(socket);
  clearTimeout(idleTimer);
  const receive = (line: string) => fromWorker(socket, line[0], line.slice(1));
  const onData = lineReader(2 * MAX_MESSAGE_BYTES, receive, () => socket.destroy());
  socket.on("data", onData);
  socket.on("error", () => {});
  socket.on("drain", () => program?.stdout?.resume());
  socket.on("close", () => onWorkerLeave(socket));
});
server.listen(path, () => process.stdout.write("listening\n"));
// The worker that started this process may be gone.
process.stdout.on("error", () => {});
process.on("SIGTERM", end);
waitForWorker();

function waitForWorker(): void {
  clearTimeout(idleTimer);
  idleTimer = setTimeout(end, keep);
}

function onWorkerLeave(socket: Socket): void {
  workers.delete(socket);
  program?.stdout?.resume();
  for (const [id, request] of requests) {
    if (request.owner !== socket) continue;
    request.owner = undefined;
    if (!request.isRecoverable) requests.delete(id);
  }
  if (user === socket) {
    user = undefined;
    // The next worker cannot use a session that is only half open.
    if (opening !== undefined && !isOpen) end();
  }
  if (workers.size === 0) waitForWorker();
  quitWhenDone();
}

function send(socket: Socket | undefined, kind: string, text: string): void {
  if (socket?.writable && !socket.write(`${kind}${text}\n`)) program?.stdout?.pause();
}

// --- from workers -----------------------------------------------------------------------------------------------------

function fromWorker(socket: Socket, kind: string | undefined, text: string): void {
  if (kind === "u") use(socket);
  else if (kind === "j") send(socket, "h", "{}");
  else if (kind === "e") end();
  else if (kind === "a") forget(text);
  else forward(socket, text, kind === "k");
}

function use(socket: Socket): void {
  const hello = () => {
    send(socket, "h", JSON.stringify({ pid: process.pid, isOpen }));
    for (const { asker, task, line } of questions.values()) {
      if (asker === undefined && task === undefined) send(socket, "m", line);
    }
  };
  if (user || isEnding || (program && !acceptsInput())) {
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
    socket.end(`x${JSON.stringify({ message: error.message, code: error.code, syscall: error.syscall })}\n`, quit);
  });
  program.stdout?.on("data", lineReader(MAX_MESSAGE_BYTES, fromProgram, onOversizedMessage));
  program.stderr?.setEncoding("utf8").on("data", (chunk: string) => send(user, "s", JSON.stringify(chunk)));
  program.stdin?.on("error", () => {});
  program.once("close", onExit);
  // The program's children may hold its output open. What the program itself has written is read by then.
  program.once("exit", () => setTimeout(onExit, EXIT_TIMEOUT_MS));
}

/** Whether the program still gets messages; not after it has exited. */
const acceptsInput = (): boolean => program?.stdin?.writable === true;

function forward(socket: Socket, text: string, isRecoverable: boolean): void {
  const message = parseExact(text) as Message;
  if (!isForProgram(socket, message, isRecoverable)) return;
  if (program?.stdin?.writable && !program.stdin.write(`${JSON.stringify(ids.outward(message))}\n`)) {
    socket.pause();
    program.stdin.once("drain", () => socket.resume());
  }
  // A request for the result of a task gets the open questions of the task.
  const resultTask = taskOf(message);
  for (const { task, line } of questions.values()) {
    if (task !== undefined && task === resultTask) send(socket, "m", line);
  }
}

/** Whether the program must get a message: not if it already got the message, or if this process can answer. */
function isForProgram(socket: Socket, message: Message, isRecoverable: boolean): boolean {
  const { id, method, params } = message;
  if (method === undefined) return questions.delete(id as Id);
  if (method === "notifications/cancelled") forget(params?.requestId as Id);
  if (method === "notifications/initialized") {
    if (isOpen) return false;
    isOpen = true;
  }
  if (id === undefined) return true;
  const request = requests.get(id);
  if (request) repeat(socket, id, request);
  else if (isEnding || !acceptsInput() || finishedIds.has(id)) send(socket, "l", String(id));
  else if (method === "initialize" && isOpen) {
    send(socket, "m", JSON.stringify({ jsonrpc: "2.0", id, result: session }));
  } else {
    if (method === "initialize") opening = id;
    requests.set(id, { owner: socket, isRecoverable, task: taskOf(message) });
    return true;
  }
  return false;
}

/** The task whose result a request asks for. */
const taskOf = ({ method, params }: Message) => (method === "tasks/result" ? params?.taskId : undefined);

/** Answers a request that an earlier worker has already sent. */
function repeat(socket: Socket, id: Id, request: Request): void {
  request.owner = socket;
  if (request.answer !== undefined) send(socket, "r", request.answer);
  else if (request.isAnswered || hasExited) send(socket, "l", String(id));
  else for (const { asker, line } of questions.values()) if (asker === id) send(socket, "m", line);
}

function forget(id: Id): void {
  storedCharacters -= requests.get(id)?.answer?.length ?? 0;
  requests.delete(id);
  finishedIds.add(id);
  for (const first of finishedIds) if (finishedIds.size > MAX_FINISHED_IDS) finishedIds.delete(first);
  for (const [question, { asker }] of questions) if (asker === id) questions.delete(question);
}

// --- from the program -------------------------------------------------------------------------------------------------

function fromProgram(line: string): void {
  const value = jsonOf(line);
  // A program may write any JSON, for example null, and other text.
  const message: Message = Object(value);
  const { id, method, params, result, error } = message;
  const isMessage = [id, method, result, error].some((field) => field !== undefined);
  if (!isMessage) send(user, "m", line);
  else if (method === undefined) onResponse(message, line);
  else if (id !== undefined) onQuestion(id, params, line);
  else onNotification(message, line);
}

function onNotification(message: Message, line: string): void {
  const { params } = ids.inward(message);
  const text = params === message.params ? line : JSON.stringify(ids.inward(parseExact(line) as Message));
  send(requests.get(params?.progressToken as Id)?.owner ?? user, "m", text);
}

/** Finds the request that a response belongs to. An error may name none, and some programs answer under ids of their own. */
function onResponse(message: Message, line: string): void {
  const { id: number = null, error } = message;
  const id = ids.idOf(number);
  if (id !== undefined) ids.delete(number);
  const isStray = id === undefined && !(number === null ? error : ids.isUsed(number));
  if (!isStray) return onAnswer(id ?? (number === null ? onlyRequest() : undefined), message, line);
  send(user, "s", JSON.stringify(`${UNKNOWN_ID.message}\n`));
  onAnswer(onlyRequest(), message, JSON.stringify({ jsonrpc: "2.0", error: UNKNOWN_ID }));
}

/** Drops a message that is too long: the call that it answers gets an error instead, and the others continue. */
function onOversizedMessage(head: string, tail: string): void {
  const id = idIn(head, tail);
  send(user, "s", JSON.stringify(`A message of more than ${MAX_MESSAGE_BYTES} bytes was dropped.\n`));
  if (id !== undefined)
    onAnswer(id, { id }, JSON.stringify({ jsonrpc: "2.0", id, error: tooLongError(MAX_MESSAGE_BYTES) }));
}

/** Finds the open request that an overlong answer belongs to, by the beginning and the end of the answer. */
function idIn(head: string, tail: string): Id | undefined {
  const [, first] = /^\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"id"\s*:\s*("[^"\\]*"|\d+)\s*,/.exec(head) ?? [];
  const [, last] = /,\s*"id"\s*:\s*("[^"\\]*"|\d+)\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*$/.exec(tail) ?? [];
  return [first, last].map((text) => text && ids.idOf(JSON.parse(text))).find((id) => id !== undefined);
}

/** The only open request, to which an answer that names none must belong; undefined if there are several. */
function onlyRequest(): Id | undefined {
  const [first, ...others] = [...requests].filter(([, { isAnswered }]) => !isAnswered);
  return others.length === 0 ? first?.[0] : undefined;
}

function onAnswer(id: Id | undefined, message: Message, text: string): void {
  const request = id === undefined ? undefined : requests.get(id);
  if (id === undefined || !request) return;
  const line = `${JSON.stringify(id)} ${text}`;
  if (id === opening) session = message.result;
  send(request.owner, "r", line);
  if (!request.isRecoverable) {
    requests.delete(id);
    return;
  }
  request.isAnswered = true;
  request.answer = line;
  storedCharacters += line.length;
  for (const first of requests.values()) {
    if (storedCharacters <= MAX_STORED_CHARACTERS) break;
    storedCharacters -= first.answer?.length ?? 0;
    delete first.answer;
  }
}

/** Only a task's question names its call. Any other question goes to the only open call, or else to the user of the program. */
function onQuestion(id: Id, params: Message["params"], line: string): void {
  const task = params?._meta?.[RELATED_TASK]?.taskId;
  const open = [...requests].filter(
    ([, request]) => !request.isAnswered && (task === undefined ? request.isRecoverable : request.task === task),
  );
  const askers = new Set([...questions.values()].map(({ asker }) => asker));
  // A call that waits for an answer is not expected to ask again. If several calls remain, the worker decides.
  const candidates = open.length === 1 ? open : open.filter(([id]) => !askers.has(id));
  const [asker, request] = (candidates.length === 1 && candidates[0]) || [];
  if (questions.size < MAX_QUESTIONS) questions.set(id, { line, asker: task === undefined ? asker : undefined, task });
  send(request ? request.owner : user, "m", line);
}

// --- the end ----------------------------------------------------------------------------------------------------------

/** Ends the program, and then this process. */
function end(): void {
  if (isEnding) return;
  isEnding = true;
  if (!program || hasExited) quit();
  program.stdin?.end();
  setTimeout(() => program?.kill("SIGTERM"), EXIT_TIMEOUT_MS);
  setTimeout(() => program?.kill("SIGKILL"), 2 * EXIT_TIMEOUT_MS);
  // The program's children may hold its streams open.
  setTimeout(quit, 3 * EXIT_TIMEOUT_MS);
}

/** Handles the program's exit. Answers that are not recorded are stored for a while. */
function onExit(): void {
  if (hasExited) return;
  hasExited = true;
  // A worker whose messages the program did not accept any more would otherwise be kept for ever.
  for (const socket of workers) socket.resume().end();
  quitWhenDone();
}

function quitWhenDone(): void {
  if (hasExited && workers.size === 0 && (isEnding || storedCharacters === 0)) quit();
}

function quit(): never {
  rmSync(path, { force: true });
  process.exit(0);
}
