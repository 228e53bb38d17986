/** Removes files whose jobs are gone: forgotten, or kept long enough; and what crashed attempts left. */
import { isKeptKey, type KeptFiles } from "../../core/jobs/files/kept-files.ts";
import type { ResonateClient } from "../../core/store/connection/client.ts";
import type { StoredObject } from "../../core/store/files/objects.ts";
import type { LineLog } from "../execution/instruments.ts";

const HOUR = 3_600_000;

/** How old something must be to be swept: no attempt that is under way is younger than what it stores. In milliseconds. */
const AGE = 24 * HOUR;

const DESCRIPTION = ".json";

/**
 * Sweeps once; resolves with how many files it removed, and how many unfinished ones. Where the server knows the job of no file
 * at all, it may be another or an empty one, and no file of a job is removed.
 */
export async function sweep(files: KeptFiles, client: ResonateClient, age = AGE): Promise<number> {
  const { objects } = files.place;
  const before = Date.now() - age;
  const gone = new Map<string, Promise<boolean>>();
  const isGone = (id: string) => {
    const known =
      gone.get(id) ?? client.send("promise.get", { id }, { origin: id }).then(({ status }) => status === 404);
    gone.set(id, known);
    return known;
  };
  let removed = 0;
  let isOurs = false;
  const orphans: string[] = [];
  const sweepFolder = async (found: readonly StoredObject[]) => {
    const keys = new Set(found.map(({ key }) => key));
    gone.clear();
    for (const { key, at } of found) {
      if (at > before) continue;
      if (!key.endsWith(DESCRIPTION)) {
        if (keys.has(key + DESCRIPTION)) continue;
        await objects.remove(key);
      } else {
        const file = key.slice(0, -DESCRIPTION.length);
        // One that no key opens is another deployment's.
        const about = await files.describe(file).catch(() => undefined);
        if (!about) continue;
        if (await isGone(about.job)) orphans.push(file);
        else isOurs = true;
        continue;
      }
      removed += 1;
    }
  };
  let folder: StoredObject[] = [];
  const nameOf = ({ key }: StoredObject) => key.split("/")[0];
  for await (const each of objects.list("")) {
    if (!isKeptKey(each.key)) continue;
    if (folder[0] && nameOf(folder[0]) !== nameOf(each)) {
      await sweepFolder(folder);
      folder = [];
    }
    folder.push(each);
  }
  await sweepFolder(folder);
  if (!isOurs) return removed;
  for (const file of orphans) await files.remove(file);
  return removed + orphans.length;
}

/** Sweeps a minute after the start and every six hours, until the returned function is called. */
export function sweeping(files: KeptFiles, client: ResonateClient, log: LineLog): () => void {
  const run = async () => {
    const removed = await sweep(files, client).catch((error: Error) => {
      log.warn({ reason: error.message }, "files were not swept");
      return 0;
    });
    if (removed > 0) log.info({ removed }, "files of jobs that are gone were removed");
    timer = setTimeout(run, 6 * HOUR).unref();
  };
  let timer = setTimeout(run, 60_000).unref();
  return () => clearTimeout(timer);
}
