import { setTimeout as delay } from "node:timers/promises";
import type { WorkerFeature } from "../../core/feature.ts";
import type { LineLog } from "../../core/jobs/index.ts";
import type { ResonateClient } from "../../core/resonate/index.ts";
import type { FileStorage } from "./kept-files.ts";
import { sweep } from "./sweep.ts";

/** Removes the files of jobs that are gone, while the worker takes tasks. */
export const sweepFiles = (files: FileStorage, client: ResonateClient, log: LineLog): WorkerFeature => ({
  name: "files",
  async open(signal) {
    void sweepRepeatedly(files, client, log, signal);
  },
});

/** Sweeps files a minute after the start and every six hours, until `signal` aborts. */
async function sweepRepeatedly(files: FileStorage, client: ResonateClient, log: LineLog, signal: AbortSignal) {
  const hasPassed = (ms: number) => delay(ms, true, { ref: false, signal }).catch(() => false);
  for (let pause = 60_000; await hasPassed(pause); pause = 6 * 3_600_000) {
    const removed = await sweep(files, client).catch((error: Error) => {
      log.warn({ reason: error.message }, "files were not swept");
      return 0;
    });
    if (removed > 0) log.info({ removed }, "files of jobs that are gone were removed");
  }
}
