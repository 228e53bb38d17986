/** A store closes the source of an upload that fails. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, test } from "vitest";
import { inPieces, type ObjectStore, PART_BYTES } from "./objects.ts";
import { type Bucket, bucketStore } from "./r2.ts";
import { s3Of } from "./s3.ts";

/** Writes an object of many parts; resolves with the error and whether the source was closed before the error came. */
async function write(store: ObjectStore) {
  let isClosed = false;
  async function* source() {
    try {
      for (;;) yield new Uint8Array(PART_BYTES);
    } finally {
      isClosed = true;
    }
  }
  const error = await store.write("key", inPieces(source(), PART_BYTES)).catch((error: Error) => error);
  return { error, isClosed };
}

test("S3 closes the source of an upload whose second part it refuses", async () => {
  const server = createServer((request, response) => {
    request.resume().on("end", () => {
      if (request.method === "POST") response.end("<UploadId>7</UploadId>");
      else response.writeHead(request.url?.includes("partNumber=2") ? 403 : 200).end();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const FILES_URL = `http://127.0.0.1:${(server.address() as AddressInfo).port}/bucket`;
  const { error, isClosed } = await write(s3Of({ FILES_URL, FILES_KEY_ID: "id", FILES_SECRET: "secret" }));
  server.close();
  expect(error).toMatchObject({ message: expect.stringContaining("answered 403") });
  expect(isClosed).toBe(true);
});

test("R2 closes the source of an upload whose second part it refuses", async () => {
  const createMultipartUpload = async () => ({
    async uploadPart(n: number) {
      if (n === 2) throw new Error("no room");
      return { partNumber: n, etag: "a" };
    },
    complete: async () => {},
    abort: async () => {},
  });
  const { error, isClosed } = await write(bucketStore({ createMultipartUpload } as unknown as Bucket));
  expect(error).toMatchObject({ message: "no room" });
  expect(isClosed).toBe(true);
});
