/** Ends a worker whose thread is blocked, by an endless loop or a blocking call. A second thread watches the first. */
import { writeSync } from "node:fs";
import { url } from "node:inspector";
import { setTimeout as delay } from "node:timers/promises";
import { isMainThread, Worker, workerData } from "node:worker_threads";

/** How often the watched thread counts up, and how often it is checked. */
const BEAT_MS = 1_000;

/** How long the search for the blocking call may take. */
const STACK_TIMEOUT_MS = 2_000;

/** How many frames of the stack are logged. */
const MAX_FRAMES = 5;

interface WatchedThread {
  /** A single number, which grows while the thread is not blocked. */
  beats: Int32Array;
  limitMs: number;
}

/** Ends this process when its thread has been blocked for `limitMs`, and logs where; not under a debugger. */
export function watchThread(limitMs: number): void {
  if (url() !== undefined) return;
  const beats = new Int32Array(new SharedArrayBuffer(4));
  setInterval<[Int32Array, number, number]>(Atomics.add, BEAT_MS, beats, 0, 1).unref();
  new Worker(new URL(import.meta.url), {
    workerData: { watchdog: { beats, limitMs } },
    resourceLimits: { maxYoungGenerationSizeMb: 1 },
  }).unref();
}

async function watch({ beats, limitMs }: WatchedThread): Promise<void> {
  let last = -1;
  // Counts checks instead of measuring time, because the whole process or machine may have slept.
  for (let silent = 0; silent * BEAT_MS < limitMs; silent++) {
    await delay(BEAT_MS);
    const now = Atomics.load(beats, 0);
    if (now !== last) silent = 0;
    last = now;
  }
  const at = await Promise.race([stackOfMainThread().catch(() => undefined), delay(STACK_TIMEOUT_MS)]);
  const entry = {
    level: "fatal",
    time: new Date(),
    blocked_for_ms: limitMs,
    at,
    msg: "the thread is held: the worker ends",
  };
  writeSync(1, `${JSON.stringify(entry)}\n`); // a logger would use the blocked thread
  process.kill(process.pid, "SIGKILL");
}

/** The stack of the main thread. A call that blocks inside the runtime delays the answer until it returns. */
async function stackOfMainThread(): Promise<string[]> {
  const { Session } = await import("node:inspector/promises"); // loaded late: it takes memory
  const session = new Session();
  session.connectToMainThread();
  const urls = new Map<string, string>();
  session.on("Debugger.scriptParsed", ({ params: { scriptId, url } }) => urls.set(scriptId, url));
  const paused = new Promise<string[]>((resolve) => {
    session.on("Debugger.paused", ({ params: { callFrames } }) => {
      const calls = callFrames.slice(0, MAX_FRAMES);
      resolve(
        calls.map(({ functionName, location: { scriptId, lineNumber } }) =>
          `${functionName} ${urls.get(scriptId)}:${lineNumber + 1}`.trim(),
        ),
      );
    });
  });
  await session.post("Debugger.enable");
  await session.post("Debugger.pause");
  return paused;
}

if (!isMainThread && workerData?.watchdog) await watch(workerData.watchdog);
