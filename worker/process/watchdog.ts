/**
 * Ends a worker whose thread is held, by a loop without an end or a call that blocks. Its leases have lapsed, it takes and
 * finishes nothing, and nothing in it can say so: another thread does.
 */

import { writeSync } from "node:fs";
import { url } from "node:inspector";
import { setTimeout as delay } from "node:timers/promises";
import { isMainThread, Worker, workerData } from "node:worker_threads";

/** How often the thread shows that it is not held, and is looked at, in milliseconds. */
const BEAT = 1_000;

/** How long it may take to find out where the thread is, in milliseconds. */
const WHERE = 2_000;

/** How many of the calls that it is in are told. */
const FRAMES = 5;

interface Watched {
  /** One number, which grows while the thread is not held. */
  beats: Int32Array;
  /** In milliseconds. */
  limit: number;
}

/** Ends this process when its thread has been held for `limit` milliseconds, and logs where. Not while it is debugged. */
export function watchThread(limit: number): void {
  if (url() !== undefined) return;
  const beats = new Int32Array(new SharedArrayBuffer(4));
  setInterval(() => Atomics.add(beats, 0, 1), BEAT).unref();
  new Worker(new URL(import.meta.url), {
    workerData: { watchdog: { beats, limit } },
    resourceLimits: { maxYoungGenerationSizeMb: 1 },
  }).unref();
}

async function watch({ beats, limit }: Watched): Promise<void> {
  let last = -1;
  // Counted, not measured: while the whole process or machine sleeps, nobody counts.
  for (let silent = 0; silent * BEAT < limit; silent++) {
    await delay(BEAT);
    const now = Atomics.load(beats, 0);
    if (now !== last) silent = 0;
    last = now;
  }
  const at = await Promise.race([where().catch(() => undefined), delay(WHERE)]);
  const line = { level: "fatal", time: new Date(), held_for_ms: limit, at, msg: "the thread is held: the worker ends" };
  writeSync(1, `${JSON.stringify(line)}\n`); // a logger hands it to the thread that is held
  process.kill(process.pid, "SIGKILL");
}

/** The calls that the main thread is in; while it is in one of the runtime's own, that is not known before it has ended. */
async function where(): Promise<string[]> {
  const { Session } = await import("node:inspector/promises"); // not before: it takes memory
  const session = new Session();
  session.connectToMainThread();
  const urls = new Map<string, string>();
  session.on("Debugger.scriptParsed", ({ params: { scriptId, url } }) => urls.set(scriptId, url));
  const paused = new Promise<string[]>((resolve) => {
    session.on("Debugger.paused", ({ params: { callFrames } }) => {
      const calls = callFrames.slice(0, FRAMES);
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
