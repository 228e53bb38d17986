/** Removes files whose jobs are gone, by `forget` or by retention, and unfinished files that crashed attempts left. */
import type { ResonateClient } from "../../core/resonate/index.ts";
import { DESCRIPTION_SUFFIX, type FileStorage, isFileKey } from "./kept-files.ts";
import type { StoredObject } from "./storage/objects.ts";

/** How old an object must be to be swept, in milliseconds. */
interface Ages {
  /** A file without a description, which a running attempt may still be writing; default: a day. */
  unfinishedMs?: number;
  /** A file whose job is gone; default: as `unfinishedMs`. */
  orphanedMs?: number;
}

/**
 * Sweeps once, in steps. Each step examines or removes one file, with at most three requests to the store, and yields how many
 * it removed. If the server knows the job of no file at all, it may be the wrong server or an empty one: then all files that
 * have a description stay.
 */
export async function* sweepInSteps(
  files: FileStorage,
  client: ResonateClient,
  { unfinishedMs = 24 * 3_600_000, orphanedMs = unfinishedMs }: Ages = {},
): AsyncGenerator<number, void, undefined> {
  const { objects } = files.location;
  const now = Date.now();
  let isOurs = false;
  const orphans: { file: string; job: string }[] = [];
  const isGone = async (id: string) => (await client.send("promise.get", { id }, { origin: id })).status === 404;
  const sweepFolder = async function* (objectsOfJob: readonly StoredObject[]) {
    const keys = new Set(objectsOfJob.map(({ key }) => key));
    const isGoneByJob = new Map<string, Promise<boolean>>();
    for (const { key, at } of objectsOfJob) {
      if (!key.endsWith(DESCRIPTION_SUFFIX)) {
        if (at > now - unfinishedMs || keys.has(key + DESCRIPTION_SUFFIX)) continue;
        await objects.remove(key);
        yield 1;
      } else if (at <= now - orphanedMs) {
        const file = key.slice(0, -DESCRIPTION_SUFFIX.length);
        // A description that no key opens belongs to another deployment.
        const description = await files.describe(file).catch(() => undefined);
        if (description) {
          const check = isGoneByJob.get(description.job) ?? isGone(description.job);
          isGoneByJob.set(description.job, check);
          if (await check) orphans.push({ file, job: description.job });
          else isOurs = true;
        }
        yield 0;
      }
    }
  };
  let folder: StoredObject[] = [];
  const nameOf = ({ key }: StoredObject) => key.split("/")[0];
  for await (const each of objects.list("")) {
    if (!isFileKey(each.key)) continue;
    if (folder[0] && nameOf(folder[0]) !== nameOf(each)) {
      yield* sweepFolder(folder);
      folder = [];
    }
    folder.push(each);
  }
  yield* sweepFolder(folder);
  if (!isOurs) return;
  for (const { file, job } of orphans) {
    // Meanwhile the job may have been started again, and have stored a file under the same key.
    const isOrphan = await isGone(job);
    if (isOrphan) await files.remove(file);
    yield Number(isOrphan);
  }
}

/** Sweeps once. Resolves with how many files it removed, finished or not. `age`: how old they must be, in milliseconds. */
export async function sweep(files: FileStorage, client: ResonateClient, age?: number): Promise<number> {
  let removed = 0;
  for await (const each of sweepInSteps(files, client, age === undefined ? {} : { unfinishedMs: age })) removed += each;
  return removed;
}
