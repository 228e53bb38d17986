/** The stores for files: a folder, a bucket of an account (in miniflare), and S3 if `S3_URL` and its keys are set. */
import { randomBytes } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { convertV4MiniflareOptions, Miniflare } from "miniflare";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { folderStore } from "../../features/files/folder.ts";
import { FileStorage } from "../../features/files/kept-files.ts";
import { locationOf } from "../../features/files/location.ts";
import { bytesOf, inPieces, type ObjectStore, PART_BYTES } from "../../features/files/storage/objects.ts";
import { type Bucket, bucketStore } from "../../features/files/storage/r2.ts";
import { s3Of } from "../../features/files/storage/s3.ts";

const { S3_URL } = process.env;
const made = { key: "", folder: "" };
let miniflare: Miniflare;
let bucket: Bucket;
beforeAll(async () => {
  made.folder = await mkdtemp(join(tmpdir(), "store-"));
  const options = { modules: true, script: "export default {}", r2Buckets: ["FILES"], compatibilityDate: "2026-01-01" };
  miniflare = new Miniflare(convertV4MiniflareOptions(options as never));
  bucket = (await miniflare.getR2Bucket("FILES")) as unknown as Bucket;
});
afterAll(async () => {
  await miniflare?.dispose();
  await rm(made.folder, { recursive: true, force: true });
});

const stores: [string, () => ObjectStore][] = [
  ["a folder", () => folderStore(made.folder)],
  ["a bucket", () => bucketStore(bucket)],
];
if (S3_URL) {
  const { S3_KEY_ID: FILES_KEY_ID, S3_SECRET: FILES_SECRET } = process.env;
  stores.push(["S3", () => s3Of({ FILES_URL: `${S3_URL}/files-test/a%20folder`, FILES_KEY_ID, FILES_SECRET })]);
}

async function* chunks(bytes: Uint8Array, size = 100_000) {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}
const write = (store: ObjectStore, key: string, bytes: Uint8Array) =>
  store.write(key, inPieces(chunks(bytes), PART_BYTES));
const copies = async (chunks: AsyncIterable<Uint8Array>) => {
  const all: Buffer[] = [];
  for await (const each of chunks) all.push(Buffer.from(each));
  return all;
};
const folder = () => randomBytes(20).toString("hex");

describe.each(stores)("%s", (_name, open) => {
  const listed = async (prefix: string) => {
    const keys: string[] = [];
    for await (const { key } of open().list(prefix)) keys.push(key);
    return keys;
  };

  test.each([0, 1, PART_BYTES, 2 * PART_BYTES + 5])("keeps %i bytes, in ranges too", async (size) => {
    const store = open();
    const key = `${folder()}/${"a".repeat(16)}-1.1.1`;
    const bytes = new Uint8Array(randomBytes(size));
    await write(store, key, bytes);
    const read = async (range?: { offset: number; length: number }) => bytesOf((await store.read(key, range)) as never);
    expect(Buffer.compare(await read(), bytes)).toBe(0);
    const [offset, length] = [Math.floor(size / 3), Math.floor(size / 2)];
    const part = await read({ offset, length });
    expect(Buffer.compare(part, bytes.subarray(offset, offset + length))).toBe(0);
    await store.remove(key);
    expect(await store.read(key)).toBeUndefined();
    await store.remove(key); // a second removal is not an error
  });

  test("lists keys by prefix, and keeps nothing of a failed write", async () => {
    const store = open();
    const [own, other] = [folder(), folder()];
    for (const key of [`${own}/b-1`, `${own}/a-1`, `${other}/a-1`]) await write(store, key, new Uint8Array([1]));
    expect(await listed(`${own}/`)).toEqual([`${own}/a-1`, `${own}/b-1`]);
    expect(await listed(`${own}/b`)).toEqual([`${own}/b-1`]);
    expect(await listed("")).toEqual(expect.arrayContaining([`${own}/a-1`, `${other}/a-1`]));
    async function* broken() {
      yield* inPieces(chunks(new Uint8Array(2 * PART_BYTES)), PART_BYTES);
      throw new Error("the source broke");
    }
    await expect(store.write(`${own}/c-1`, broken())).rejects.toThrow("the source broke");
    expect(await listed(`${own}/`)).toEqual([`${own}/a-1`, `${own}/b-1`]);
    expect(await store.read(`${own}/c-1`)).toBeUndefined();
    for (const key of await listed(`${own}/`)) await store.remove(key);
    expect(await listed(`${own}/`)).toEqual([]);
  });

  test.each([0, 1, 262_143, 262_144, 262_145, 600_000])(
    "a sealed file of %i bytes is read whole and in ranges",
    async (size) => {
      const keys = { FILES_URL: made.folder, ENCRYPTION_KEYS: randomBytes(32).toString("base64") };
      const files = new FileStorage({ ...locationOf(keys), objects: open() });
      const key = `${folder()}/${"b".repeat(16)}-1.1.1`;
      const bytes = new Uint8Array(randomBytes(size));
      const about = await files.write(key, chunks(bytes), { job: "a job", name: "b.bin", mimeType: "a/b" });
      expect(await files.describe(key)).toEqual(about);
      const edges = [0, 1, 262_143, 262_144, 262_145, size - 1, size].filter((at) => at >= 0 && at <= size);
      for (const from of edges) {
        for (const to of edges.filter((at) => at > from || (size === 0 && at === 0))) {
          const part = Buffer.concat(await copies((await files.bytes(key, about, { from, to })) as never));
          expect(Buffer.compare(part, bytes.subarray(from, to)), `${from} to ${to}`).toBe(0);
        }
      }
      // A description is bound to its key and cannot be opened under another one.
      const moved = `${folder()}/${"b".repeat(16)}-1.1.1`;
      await write(open(), `${moved}.json`, await bytesOf((await open().read(`${key}.json`)) as never));
      await expect(files.describe(moved)).rejects.toThrow();
      await files.remove(key);
      expect(await files.describe(key)).toBeUndefined();
    },
  );
});
