/** Removes files whose jobs are gone, by `forget` or by retention, and unfinished files that crashed attempts left. */
import type { ResonateClient } from "../../core/resonate/connection/client.ts";
import { DESCRIPTION, isKeptKey, type KeptFiles } from "./kept-files.ts";
import type { StoredObject } from "./storage/objects.ts";

/** How old an object must be to be swept, in milliseconds. */
interface Ages {
  /** A file without a description, which a running attempt may still be writing; default: a day. */
  unfinished?: number;
  /** A file whose job is gone; default: as `unfinished`. */
  gone?: number;
}

/**
 * Sweeps once, in steps. Each step examines or removes one file, with at most three requests to the store, and yields how many
 * it removed. If the server knows the job of no file at all, it may be the wrong server or an empty one: then all files that
 * have a description stay.
 */
export async function* sweepInSteps(
  files: KeptFiles,
  client: ResonateClient,
  { unfinished = 24 * 3_600_000, gone = unfinished }: Ages = {},
): AsyncGenerator<number, void, undefined> {
  const { objects } = files.location;
  const now = Date.now();
  let isOurs = false;
  const orphans: { file: string; job: string }[] = [];
  const isGone = async (id: string) => (await client.send("promise.get", { id }, { origin: id })).status === 404;
  const sweepFolder = async function* (found: readonly StoredObject[]) {
    const keys = new Set(found.map(({ key }) => key));
    const known = new Map<string, Promise<boolean>>();
    for (const { key, at } of found) {
      if (!key.endsWith(DESCRIPTION)) {
        if (at > now - unfinished || keys.has(key + DESCRIPTION)) continue;
        await objects.remove(key);
        yield 1;
      } else if (at <= now - gone) {
        const file = key.slice(0, -DESCRIPTION.length);
        // A description that no key opens belongs to another deployment.
        const about = await files.describe(file).catch(() => undefined);
        if (about) {
          const asked = known.get(about.job) ?? isGone(about.job);
          known.set(about.job, asked);
          if (await asked) orphans.push({ file, job: about.job });
          else isOurs = true;
        }
        yield 0;
      }
    }
  };
  let folder: StoredObject[] = [];
  const nameOf = ({ key }: StoredObject) => key.split("/")[0];
  for await (const each of objects.list("")) {
    if (!isKeptKey(each.key)) continue;
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
export async function sweep(files: KeptFiles, client: ResonateClient, age?: number): Promise<number> {
  let removed = 0;
  for await (const each of sweepInSteps(files, client, age === undefined ? {} : { unfinished: age })) removed += each;
  return removed;
}
