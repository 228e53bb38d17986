/** Object store in a bucket of any store that speaks S3, by its URL and keys. */
import { AwsClient } from "aws4fetch";
import { pause, sha256Of } from "../../../core/resonate/index.ts";
import { type ObjectStore, PART_BYTES, type StoredObject } from "./objects.ts";

interface S3Options {
  /** Has the bucket in its path, and optionally a prefix for all keys: `https://s3.example.com/bucket/prefix`. */
  url: string;
  keyId: string;
  secret: string;
  region: string;
}

/** The variables that name a bucket, and the keys to it. */
interface Variables {
  FILES_URL?: string | undefined;
  FILES_KEY_ID?: string | undefined;
  FILES_SECRET?: string | undefined;
  FILES_REGION?: string | undefined;
}

/** The bucket that `FILES_URL` names. @throws {Error} if its keys are missing */
export function s3Of({ FILES_URL: url = "", FILES_KEY_ID: keyId, FILES_SECRET: secret, FILES_REGION }: Variables) {
  if (!keyId || !secret)
    throw new Error("FILES_URL names a bucket: FILES_KEY_ID and FILES_SECRET must be set, the keys to it");
  return s3Store({ url, keyId, secret, region: FILES_REGION || "auto" });
}

/** Marks an unfinished upload in a list, before the id of the upload. */
const UPLOAD_ID_QUERY = "?uploadId=";

const MAX_TRIES = 4;

/** The requests to a bucket. */
class Bucket {
  readonly #client: AwsClient;
  readonly #origin: string;
  readonly #name: string;
  readonly #home: string;
  /** The prefix of all keys, as keys have it: a path is percent-encoded. */
  readonly prefix: string;

  constructor({ url, keyId, secret, region }: S3Options) {
    this.#client = new AwsClient({
      accessKeyId: keyId,
      secretAccessKey: secret,
      region,
      service: "s3",
      retries: 0,
    });
    const { origin, pathname } = new URL(url);
    const [, name = "", ...folders] = pathname.replace(/\/+$/, "").split("/");
    this.#origin = origin;
    this.#name = name;
    this.#home = folders.length > 0 ? `${folders.join("/")}/` : "";
    this.prefix = decodeURIComponent(this.#home);
  }

  pathOf(key: string): string {
    return `/${this.#home}${key}`;
  }

  /** Sends a request and resolves to its answer, which may be 404. @throws {Error} with the store's words */
  async send(
    method: string,
    path: string,
    body: Uint8Array<ArrayBuffer> | string = "",
    headers: Record<string, string> = {},
  ): Promise<Response> {
    const bytes = typeof body === "string" ? new TextEncoder().encode(body) : body;
    // The store checks the received bytes against this hash.
    const signedHeaders = { ...headers, "x-amz-content-sha256": await sha256Of(bytes) };
    for (let n = 1; ; n++) {
      const request = { method, headers: signedHeaders, ...(method !== "GET" && { body: bytes }) };
      const url = `${this.#origin}/${this.#name}${path}`;
      const answer = await this.#client.fetch(url, request).catch((error: Error) => error);
      const isLast = n === MAX_TRIES;
      if (answer instanceof Error) {
        if (isLast) throw new Error(`the store of files: ${answer.message}`, { cause: answer });
      } else if (answer.ok || answer.status === 404) return answer;
      else {
        const words = (await answer.text()).slice(0, 300);
        if (answer.status < 500 || isLast) throw new Error(`the store of files answered ${answer.status}: ${words}`);
      }
      await pause(100 * 4 ** n);
    }
  }

  /** The same for what must exist. */
  async request(method: string, path: string, body?: Uint8Array<ArrayBuffer> | string): Promise<Response> {
    const response = await this.send(method, path, body);
    if (response.ok) return response;
    throw new Error(`the store of files answered ${response.status}: ${(await response.text()).slice(0, 300)}`);
  }

  /** Begins an upload in parts; resolves with a function that returns its path, with more in the query. */
  async beginUpload(key: string): Promise<(more?: string) => string> {
    const path = this.pathOf(key);
    const uploadId = inside(await (await this.request("POST", `${path}?uploads=`)).text(), "UploadId");
    return (more = "") => `${path}?${more}uploadId=${encodeURIComponent(uploadId)}`;
  }

  /** The elements `tag` of all pages of a list. `next`: where a page says how the next one is asked for. */
  async *list(
    query: Record<string, string>,
    tag: string,
    next: readonly (readonly [from: string, to: string])[],
  ): AsyncGenerator<string> {
    for (let more: Record<string, string> | undefined = {}; more;) {
      const search: URLSearchParams = new URLSearchParams({ ...query, ...more });
      const text = await (await this.request("GET", `?${search}`)).text();
      for (const [, entry = ""] of text.matchAll(new RegExp(`<${tag}>(.*?)</${tag}>`, "gs"))) yield entry;
      const isCut = inside(text, "IsTruncated") === "true";
      more = isCut ? Object.fromEntries(next.map(([from, to]) => [to, inside(text, from)])) : undefined;
    }
  }
}

function s3Store(options: S3Options): ObjectStore {
  const bucket = new Bucket(options);
  return {
    async write(key, parts) {
      let upload: ((more?: string) => string) | undefined;
      const tags: string[] = [];
      try {
        for await (const part of parts) {
          if (!upload && part.length < PART_BYTES) return void (await bucket.request("PUT", bucket.pathOf(key), part));
          upload ??= await bucket.beginUpload(key);
          const { headers } = await bucket.request("PUT", upload(`partNumber=${tags.length + 1}&`), part);
          tags.push(headers.get("etag") ?? "");
        }
        if (!upload) return;
        const list = tags.map((tag, i) => `<Part><PartNumber>${i + 1}</PartNumber><ETag>${tag}</ETag></Part>`);
        const body = `<CompleteMultipartUpload>${list.join("")}</CompleteMultipartUpload>`;
        const answer = await (await bucket.request("POST", upload(), body)).text();
        // The store may fail after it has sent status 200.
        if (answer.includes("<Error>")) throw new Error(`the store of files answered: ${answer.slice(0, 300)}`);
      } catch (error) {
        if (upload) await bucket.send("DELETE", upload()).catch(() => {});
        throw error;
      }
    },
    async read(key, range) {
      if (range?.length === 0) return new Blob([]).stream();
      const headers = range && { range: `bytes=${range.offset}-${range.offset + range.length - 1}` };
      const response = await bucket.send("GET", bucket.pathOf(key), "", headers);
      if (response.status !== 404) return response.body ?? new Blob([]).stream();
      await response.body?.cancel();
      return undefined;
    },
    async *list(prefix): AsyncGenerator<StoredObject> {
      const all = bucket.prefix + prefix;
      const query = { "list-type": "2", prefix: all };
      for await (const entry of bucket.list(query, "Contents", [["NextContinuationToken", "continuation-token"]]))
        yield { key: inside(entry, "Key").slice(bucket.prefix.length), at: Date.parse(inside(entry, "LastModified")) };
      const markers = [
        ["NextKeyMarker", "key-marker"],
        ["NextUploadIdMarker", "upload-id-marker"],
      ] as const;
      for await (const entry of bucket.list({ uploads: "", prefix: all }, "Upload", markers)) {
        const key =
          inside(entry, "Key").slice(bucket.prefix.length) +
          UPLOAD_ID_QUERY +
          encodeURIComponent(inside(entry, "UploadId"));
        yield { key, at: Date.parse(inside(entry, "Initiated")) };
      }
    },
    remove: async (key) => void (await bucket.send("DELETE", bucket.pathOf(key))),
  };
}

const inside = (xml: string, tag: string): string =>
  (new RegExp(`<${tag}>(.*?)</${tag}>`, "s").exec(xml)?.[1] ?? "")
    .replaceAll("&quot;", '"')
    .replaceAll("&lt;", "<")
    .replaceAll("&gt;", ">")
    .replaceAll("&amp;", "&");
