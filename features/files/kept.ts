/** The files of jobs, at the location that the edge's bindings name. */
import { FileStorage } from "./kept-files.ts";
import { type FileBindings, locationInWorkers } from "./location-in-workers.ts";
import type { ObjectStore } from "./storage/objects.ts";

export interface EdgeFileBindings extends FileBindings {
  /** The folder of one machine. */
  FILES_FOLDER?: Disk;
}

/** Whether jobs may store files, which may be of any size. */
export const keepsFiles = ({ FILES_FOLDER, FILES, FILES_URL }: EdgeFileBindings): boolean =>
  Boolean(FILES_FOLDER ?? FILES ?? FILES_URL);

/** Undefined where no files are kept. */
export function fileStorageOf(env: EdgeFileBindings): FileStorage | undefined {
  const { FILES_FOLDER, ENCRYPTION_KEYS: encryptionKeys } = env;
  const location = FILES_FOLDER ? { objects: diskStore(FILES_FOLDER), encryptionKeys } : locationInWorkers(env);
  return location && new FileStorage(location);
}

/** The folder of files of one machine, which workerd serves to the edge. The edge reads and removes files; workers write them. */
interface Disk {
  fetch(url: string, init?: RequestInit): Promise<Response>;
}

function diskStore(disk: Disk): ObjectStore {
  const at = (key: string) => `http://files/${key}`;
  return {
    async write() {
      throw new Error("the edge writes no files");
    },
    async read(key, range) {
      if (range?.length === 0) return new Blob([]).stream();
      const headers = range && { range: `bytes=${range.offset}-${range.offset + range.length - 1}` };
      const response = await disk.fetch(at(key), headers && { headers });
      if (response.ok) return response.body ?? new Blob([]).stream();
      await response.body?.cancel();
      if (response.status === 404) return undefined;
      throw new Error(`the folder of files answered ${response.status}`);
    },
    async *list(prefix) {
      const [folder] = prefix.split("/");
      const response = await disk.fetch(at(`${folder}/`));
      const entries = response.ok ? ((await response.json()) as { name: string }[]) : [];
      for (const { name } of entries)
        if (`${folder}/${name}`.startsWith(prefix)) yield { key: `${folder}/${name}`, at: 0 };
    },
    remove: async (key) => void (await disk.fetch(at(key), { method: "DELETE" })),
  };
}
