import type { KeptFiles } from "../../core/jobs/files/kept-files.ts";
import { sweep } from "../../core/jobs/files/sweep.ts";
import type { ResonateClient } from "../../core/store/connection/client.ts";
import type { LineLog } from "../execution/instruments.ts";

/** Sweeps files a minute after the start and every six hours, until the returned function is called. */
export function sweeping(files: KeptFiles, client: ResonateClient, log: LineLog): () => void {
  const run = async () => {
    const removed = await sweep(files, client).catch((error: Error) => {
      log.warn({ reason: error.message }, "files were not swept");
      return 0;
    });
    if (removed > 0) log.info({ removed }, "files of jobs that are gone were removed");
    timer = setTimeout(run, 6 * 3_600_000).unref();
  };
  let timer = setTimeout(run, 60_000).unref();
  return () => clearTimeout(timer);
}
