/** The folder of files of one machine, which workerd serves to the edge: it reads and removes, and workers write. */
import type { ObjectStore } from "../../core/store/files/objects.ts";

export interface Disk {
  fetch(url: string, init?: RequestInit): Promise<Response>;
}

export function diskStore(disk: Disk): ObjectStore {
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
