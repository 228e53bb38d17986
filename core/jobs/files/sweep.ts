/** Removes files whose jobs are gone: forgotten, or kept long enough; and what crashed attempts left. */
import type { ResonateClient } from "../../store/connection/client.ts";
import type { StoredObject } from "../../store/files/objects.ts";
import { isKeptKey, type KeptFiles } from "./kept-files.ts";

const DESCRIPTION = ".json";

/** How old something must be to be swept, in milliseconds. */
export interface Ages {
  /** For files without a description: no running attempt is younger than its files. */
  unfinished?: number;
  /** A file whose job is gone; default: the same. */
  gone?: number;
}

/**
 * Sweeps once, in steps: each looks at one file or removes something, by up to three requests to the store, and yields how much it
 * removed. Where the server knows the job of no file at all, it may be another or an empty one, and no file of a job is removed.
 */
export async function* sweepInSteps(
  files: KeptFiles,
  client: ResonateClient,
  { unfinished = 24 * 3_600_000, gone = unfinished }: Ages = {},
): AsyncGenerator<number, void, undefined> {
  const { objects } = files.location;
  const now = Date.now();
  let isOurs = false;
  const orphans: string[] = [];
  const sweepFolder = async function* (found: readonly StoredObject[]) {
    const keys = new Set(found.map(({ key }) => key));
    const known = new Map<string, Promise<boolean>>();
    const isGone = (id: string) => {
      const asked = known.get(id) ?? client.send("promise.get", { id }, { origin: id }).then((a) => a.status === 404);
      known.set(id, asked);
      return asked;
    };
    for (const { key, at } of found) {
      if (!key.endsWith(DESCRIPTION)) {
        if (at > now - unfinished || keys.has(key + DESCRIPTION)) continue;
        await objects.remove(key);
        yield 1;
      } else if (at <= now - gone) {
        const file = key.slice(0, -DESCRIPTION.length);
        // One that no key opens is another deployment's.
        const about = await files.describe(file).catch(() => undefined);
        if (about && (await isGone(about.job))) orphans.push(file);
        else if (about) isOurs = true;
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
  for (const file of orphans) {
    await files.remove(file);
    yield 1;
  }
}

/** Sweeps once; resolves with how many files it removed, and how many unfinished ones. */
export async function sweep(files: KeptFiles, client: ResonateClient, age?: number): Promise<number> {
  let removed = 0;
  for await (const each of sweepInSteps(files, client, age === undefined ? {} : { unfinished: age })) removed += each;
  return removed;
}
