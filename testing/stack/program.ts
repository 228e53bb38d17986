import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { type Child, startChild } from "../../cli/process/child.ts";
import { isOk } from "../../cli/process/supervise.ts";
import { jsonOf } from "../../core/resonate/index.ts";

/**
 * A program in its own process. Disposing of it kills the process at once.
 *
 * @example
 * const isAlive = ({ output }: Program) => output().includes("ready");
 */
export interface Program extends AsyncDisposable {
  readonly pid: number;
  /** Resolves with the exit code or signal when the process has exited. */
  readonly exited: Promise<{ exitCode: number | undefined; signal: string | undefined }>;
  /** The output so far, stdout and stderr together. */
  output(): string;
  /** The JSON objects among the output lines so far. */
  logs(): LogLine[];
  /** Sends a signal. Does nothing if the process has exited. */
  signal(signal: NodeJS.Signals): void;
}

/**
 * A line of a process's log. Its other fields depend on its message.
 *
 * @example
 * const isWarning = ({ level }: LogLine) => level === "warn" || level === "error";
 */
export interface LogLine {
  level?: string;
  msg?: string;
  [field: string]: unknown;
}

interface RunOptions {
  args?: string[];
  env?: Record<string, string>;
  /** Modules that are loaded before the program. */
  imports?: readonly string[];
  /** The folder that the program runs in. Default: the current one. */
  cwd?: string;
}

/** Starts `script` (a path from the current folder) with this version of Node; `env` is added to the environment. */
export function run(script: string, { args = [], env = {}, imports = [], cwd }: RunOptions = {}) {
  const options = { env: { ...process.env, ...env }, grace: 60_000, cwd };
  const importArgs = imports.flatMap((path) => ["--import", pathToFileURL(path).href]);
  return watch(startChild(process.execPath, [...importArgs, resolve(script), ...args], options));
}

/** Records the output of a process that has just started. */
export function watch(child: Child): Program {
  if (child.pid === undefined) throw new Error("the process did not start");
  let output = "";
  const logs: LogLine[] = [];
  /** How many characters of the output have been parsed into `logs`. Tests read it often, so each line is parsed only once. */
  let parsedCharacters = 0;
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (text: string) => {
      output += text;
    });
  }
  return {
    pid: child.pid,
    exited: child.exited,
    output: () => output,
    logs() {
      const end = output.lastIndexOf("\n") + 1;
      if (end > parsedCharacters) logs.push(...output.slice(parsedCharacters, end).split("\n").flatMap(parseLine));
      parsedCharacters = Math.max(parsedCharacters, end);
      return [...logs];
    },
    signal: (signal) => child.kill(signal),
    async [Symbol.asyncDispose]() {
      child.kill("SIGKILL");
      await child.exited;
    },
  };
}

function parseLine(line: string): LogLine[] {
  const entry = line.startsWith("{") ? jsonOf(line) : undefined;
  return entry === undefined ? [] : [entry as LogLine];
}

/** How long a wait may take that a hanging program makes endless: long, for busy machines, but shorter than a test. */
const HANG_TIMEOUT_MS = 150_000;

/** Waits until `condition` returns something truthy, and returns it. @throws {Error} naming `event` after `ms` milliseconds */
export async function until<T>(event: string, condition: () => T | Promise<T>, ms = 90_000): Promise<NonNullable<T>> {
  const deadline = Date.now() + ms;
  // The pauses grow, because a condition may make requests.
  for (let pause = 10; ; pause = Math.min(1.5 * pause, 250)) {
    const value = await condition();
    if (value) return value;
    if (Date.now() > deadline) throw new Error(`waited ${ms} ms for: ${event}`);
    await new Promise((resolve) => setTimeout(resolve, pause));
  }
}

/**
 * Waits for something that `program` does, as {@link until}.
 *
 * @throws {Error} with the program's output, at once if it has exited without doing it
 */
export async function untilProgram<T>(
  program: Pick<Program, "exited" | "output">,
  event: string,
  condition: () => T | Promise<T>,
): Promise<NonNullable<T>> {
  let end: Awaited<Program["exited"]> | undefined;
  void program.exited.then((exited) => {
    end = exited;
  });
  const orEnd = async () => {
    // What it did before its end counts.
    const endBefore = end;
    const value = await condition();
    if (!value && endBefore) throw new Error(`ended (${endBefore.signal ?? endBefore.exitCode}) before: ${event}`);
    return value;
  };
  return until(event, orEnd, HANG_TIMEOUT_MS).catch((error: Error) => {
    throw new Error(`${error.message}; the program wrote:\n${program.output()}`, { cause: error });
  });
}

/** Waits until `url` answers 2xx. @throws {Error} with the output of `program` if it exits before that */
export async function waitForAnswer(url: string, program: Program): Promise<void> {
  await untilProgram(program, `${url} answers`, () => isOk(url));
}
