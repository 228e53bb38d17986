/** Object store in an R2 bucket that is bound to a Worker. */
import { type ObjectStore, PART_BYTES } from "./objects.ts";

/** The part of an R2 bucket's binding that is used here. */
export interface Bucket {
  put(key: string, value: Uint8Array): Promise<unknown>;
  get(
    key: string,
    options?: { range: { offset: number; length: number } },
  ): Promise<{ body: ReadableStream<Uint8Array> } | null>;
  delete(key: string): Promise<void>;
  list(options: { prefix: string; cursor?: string }): Promise<{
    objects: { key: string; uploaded: Date }[];
    truncated: boolean;
    cursor?: string;
  }>;
  createMultipartUpload(key: string): Promise<{
    uploadPart(n: number, value: Uint8Array): Promise<UploadedPart>;
    complete(parts: UploadedPart[]): Promise<unknown>;
    abort(): Promise<void>;
  }>;
}

interface UploadedPart {
  partNumber: number;
  etag: string;
}

/** R2 removes unfinished uploads by itself, after 7 days by default. */
export function bucketStore(bucket: Bucket): ObjectStore {
  return {
    async write(key, parts) {
      let upload: Awaited<ReturnType<Bucket["createMultipartUpload"]>> | undefined;
      const done: UploadedPart[] = [];
      try {
        for await (const part of parts) {
          if (!upload && part.length < PART_BYTES) return void (await bucket.put(key, part));
          upload ??= await bucket.createMultipartUpload(key);
          done.push(await upload.uploadPart(done.length + 1, part));
        }
        await upload?.complete(done);
      } catch (error) {
        await upload?.abort().catch(() => {});
        throw error;
      }
    },
    async read(key, range) {
      if (range?.length === 0) return new Blob([]).stream();
      return (await bucket.get(key, range && { range }))?.body;
    },
    async *list(prefix) {
      let cursor: string | undefined;
      do {
        const page = await bucket.list({ prefix, ...(cursor !== undefined && { cursor }) });
        for (const { key, uploaded } of page.objects) yield { key, at: uploaded.getTime() };
        cursor = page.truncated ? page.cursor : undefined;
      } while (cursor !== undefined);
    },
    remove: (key) => bucket.delete(key),
  };
}
