import type { ObjectStore, StoredObject } from "./objects.ts";

/** Keeps the files of one simulated job in memory. */
export function memoryStore(): ObjectStore {
  const objects = new Map<string, Blob>();
  return {
    async write(key, parts) {
      const content: Blob[] = [];
      for await (const part of parts) content.push(new Blob([part]));
      objects.set(key, new Blob(content));
    },
    async read(key, range) {
      const { offset = 0, length = Number.POSITIVE_INFINITY } = range ?? {};
      return objects
        .get(key)
        ?.slice(offset, offset + length)
        .stream();
    },
    async *list(prefix): AsyncGenerator<StoredObject> {
      for (const key of objects.keys()) if (key.startsWith(prefix)) yield { key, at: 0 };
    },
    async remove(key) {
      objects.delete(key);
    },
  };
}
