/** Object store in a folder, on one machine or on a disk that all workers and edges share. */
import { createReadStream } from "node:fs";
import { type FileHandle, mkdir, open, readdir, rename, rm, rmdir, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { ObjectStore, StoredObject } from "./storage/objects.ts";

const isMissing = (error: unknown) => /^ENO(ENT|TDIR)$/.test((error as NodeJS.ErrnoException).code ?? "");

export function folderStore(root: string): ObjectStore {
  const pathOf = (key: string) => join(root, key);

  /** Tries twice, because `remove` may delete the empty folder between `mkdir` and `open`. */
  const create = async (path: string, isLast = false): Promise<Awaited<ReturnType<typeof open>>> => {
    await mkdir(dirname(path), { recursive: true });
    return open(path, "wx").catch((error) => {
      if (isLast || !isMissing(error)) throw error;
      return create(path, true);
    });
  };

  return {
    async write(key, parts) {
      const path = `${pathOf(key)}~${crypto.randomUUID()}`;
      const file = await create(path);
      try {
        for await (const part of parts) await file.writeFile(part);
        await file.sync();
        await file.close();
        await rename(path, pathOf(key));
      } catch (error) {
        await file.close().catch(() => {});
        await rm(path, { force: true });
        throw error;
      }
    },
    async read(key, range) {
      const { offset = 0, length } = range ?? {};
      if (length === 0) return new Blob([]).stream();
      const file = await open(pathOf(key)).catch((error) => {
        if (isMissing(error)) return undefined;
        throw error;
      });
      if (!file) return undefined;
      return bytesIn(file, offset, length);
    },
    async *list(prefix): AsyncGenerator<StoredObject> {
      const [folder = "", begin] = prefix.split("/");
      const entriesOf = (path: string) =>
        readdir(path).catch((error) => (isMissing(error) ? [] : Promise.reject(error)));
      const folders =
        begin === undefined ? (await entriesOf(root)).filter((each) => each.startsWith(folder)) : [folder];
      for (const each of folders.sort()) {
        for (const name of (await entriesOf(join(root, each))).sort()) {
          if (!name.startsWith(begin ?? "")) continue;
          const info = await stat(join(root, each, name)).catch(() => undefined);
          if (info?.isFile()) yield { key: `${each}/${name}`, at: info.mtimeMs };
        }
      }
    },
    async remove(key) {
      await rm(pathOf(key), { force: true });
      await rmdir(dirname(pathOf(key))).catch(() => {});
    },
  };
}

/** The bytes of an open file from `at` on. They are read directly into the reader's buffer, if it has one. */
function bytesIn(file: FileHandle, at: number, length = Number.POSITIVE_INFINITY): ReadableStream<Uint8Array> {
  const end = at + length;
  return new ReadableStream({
    type: "bytes",
    autoAllocateChunkSize: 65_536,
    async pull(controller) {
      const { byobRequest } = controller;
      const into = byobRequest?.view as Uint8Array;
      const read = file.read(into, 0, Math.min(into.byteLength, end - at), at);
      const { bytesRead } = await read.catch(async (error) => {
        await file.close().catch(() => {});
        throw error;
      });
      at += bytesRead;
      if (bytesRead === 0) {
        await file.close();
        controller.close();
      }
      byobRequest?.respond(bytesRead);
    },
    cancel: () => file.close(),
  });
}

/** The bytes of a file on the disk. */
export const readPath = (path: string): AsyncIterable<Uint8Array> => createReadStream(path);
