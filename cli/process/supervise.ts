import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { stripVTControlCharacters } from "node:util";
import type { Child } from "./child.ts";

export interface Service {
  /** The name in messages, such as "the worker". */
  readonly name: string;
  start(): Promise<Child>;
  /** The service is ready when this URL answers 2xx. */
  readonly health: string;
  rewrite?(line: string): string;
  /** The reason why the service does not start, if its last lines of output contain a message that explains it. */
  refusal?(lines: readonly string[]): string | undefined;
  onLine?(line: string, stream: "stdout" | "stderr"): void;
}

export interface SupervisedService {
  /** Resolves when the service is ready for the first time; stays pending if it never is. */
  readonly ready: Promise<void>;
  /** Resolves after `stop`; rejects with the last output if the service does not start. */
  readonly ended: Promise<void>;
  /** Stops the process and does not start it again. */
  stop(): Promise<void>;
  /** Kills a process that takes too long to end after `stop`. */
  kill(): void;
}

/** How many processes in a row may end before they are ready. */
const MAX_ATTEMPTS = 4;
/** How long a process may take to become ready: long, for busy machines. */
export const READY_TIMEOUT_MS = 180_000;
/** How long one question about that may take: a process that is starting may accept a connection and never answer on it. */
const ANSWER_TIMEOUT_MS = 10_000;
/** The time until the first report of waiting, and the interval of further reports. */
const FIRST_REPORT_MS = 5_000;
const REPORT_INTERVAL_MS = 15_000;
const MIN_RESTART_DELAY_MS = 250;
const MAX_RESTART_DELAY_MS = 10_000;
/** A process that has run this long resets the back-off. */
const STABLE_LIFE_MS = 30_000;

/**
 * Starts a service and restarts it with back-off when its process ends; reports through `say`. `attempts` is the number of
 * processes that may end before the first one is ready.
 */
export function supervise(
  service: Service,
  say: (message: string) => void,
  { attempts = MAX_ATTEMPTS }: { attempts?: number } = {},
): SupervisedService {
  const firstReady = Promise.withResolvers<void>();
  const stopping = new AbortController();
  let child: Child | undefined;

  async function run(): Promise<void> {
    let attemptsLeft = attempts;
    let shortLives = 0;
    for (let lives = 1; ; lives++) {
      const startedAt = Date.now();
      child = await service.start();
      if (stopping.signal.aborted) child.stop();
      const lastLines = follow(child, service);
      const { wasReady, ending } = await live(child, service, say, () => {
        if (lives > 1) say(`${service.name} is back`);
        firstReady.resolve();
      });
      if (stopping.signal.aborted) return;

      attemptsLeft = wasReady ? MAX_ATTEMPTS : attemptsLeft - 1;
      if (attemptsLeft === 0) {
        const refusal = service.refusal?.(lastLines);
        if (refusal !== undefined) throw new Error(`${service.name} does not start: ${refusal}`);
        throw new Error([`${service.name} does not start (${ending}). Its last output:`, ...lastLines].join("\n  "));
      }
      shortLives = Date.now() - startedAt > STABLE_LIFE_MS ? 1 : shortLives + 1;
      const delay = Math.min(MIN_RESTART_DELAY_MS * 2 ** (shortLives - 1), MAX_RESTART_DELAY_MS);
      say(`${service.name} ended (${ending}); starting it again in ${delay / 1_000} s`);
      await sleep(delay, undefined, { signal: stopping.signal }).catch(() => {});
      if (stopping.signal.aborted) return;
    }
  }

  const ended = run();
  ended.catch(() => {}); // The caller awaits it.
  return {
    ready: firstReady.promise,
    ended,
    async stop() {
      stopping.abort();
      child?.stop();
      await ended.catch(() => {});
    },
    kill: () => child?.kill("SIGKILL"),
  };
}

async function live(child: Child, { name, health }: Service, say: (message: string) => void, onReady: () => void) {
  const exit = new AbortController();
  const statusAtExit = child.exited.finally(() => exit.abort());
  const signal = AbortSignal.any([exit.signal, AbortSignal.timeout(READY_TIMEOUT_MS)]);
  const wasReady = await waitUntilUp(name, health, signal, say);
  const isSilent = !wasReady && !exit.signal.aborted;
  if (wasReady) onReady();
  if (isSilent) child.kill("SIGKILL");
  const { exitCode, signal: endSignal } = await statusAtExit;
  const ending = isSilent ? `no answer in ${READY_TIMEOUT_MS / 1_000} s` : (endSignal ?? `exit code ${exitCode}`);
  return { wasReady, ending };
}

/** Waits until `url` answers 2xx, and reports that it waits; false if `signal` aborts first. */
export async function waitUntilUp(
  name: string,
  url: string,
  signal: AbortSignal,
  say: (message: string) => void,
): Promise<boolean> {
  const since = Date.now();
  const report = () => {
    say(`Waiting for ${name} to answer at ${url} (${Math.round((Date.now() - since) / 1_000)} s) ...`);
    timer = setTimeout(report, REPORT_INTERVAL_MS);
  };
  let timer = setTimeout(report, FIRST_REPORT_MS);
  try {
    return await isAnswering(url, signal);
  } finally {
    clearTimeout(timer);
  }
}

/** Waits until `url` answers 2xx; false if `signal` aborts first. */
export async function isAnswering(url: string, signal: AbortSignal): Promise<boolean> {
  while (!signal.aborted) {
    if (await isOk(url, signal)) return !signal.aborted;
    await sleep(50);
  }
  return false;
}

/** Whether `url` answers 2xx now, within {@link ANSWER_TIMEOUT_MS}. */
export async function isOk(url: string, signal?: AbortSignal): Promise<boolean> {
  const answered = AbortSignal.timeout(ANSWER_TIMEOUT_MS);
  try {
    const response = await fetch(url, { signal: signal ? AbortSignal.any([signal, answered]) : answered });
    await response.body?.cancel();
    return response.ok;
  } catch {
    return false;
  }
}

/** How many lines of output an error shows. */
const MAX_LAST_LINES = 20;

/** Passes on each output line. The returned list always holds the last lines. */
function follow(child: Child, { rewrite = (line) => line, onLine }: Service): readonly string[] {
  const lastLines: string[] = [];
  for (const stream of ["stdout", "stderr"] as const) {
    createInterface({ input: child[stream] }).on("line", (text) => {
      const line = rewrite(text);
      lastLines.push(stripVTControlCharacters(line));
      if (lastLines.length > MAX_LAST_LINES) lastLines.shift();
      onLine?.(line, stream);
    });
  }
  return lastLines;
}
