/** Object store in a bucket of any store that speaks S3, by its URL and keys. */
import { AwsClient } from "aws4fetch";
import { pause } from "../../../core/resonate/pacing/backoff.ts";
import { sha256Of } from "../../../core/resonate/sha256.ts";
import { type ObjectStore, PART, type StoredObject } from "./objects.ts";

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
  return new Bucket({ url, keyId, secret, region: FILES_REGION || "auto" });
}

/** Marks an unfinished upload in a list, before the id of the upload. */
const UNFINISHED = "?uploadId=";

/** Where the next page of a list of unfinished uploads begins, and the parameters that take it. */
const UPLOAD_MARKERS = [
  ["NextKeyMarker", "key-marker"],
  ["NextUploadIdMarker", "upload-id-marker"],
] as const;

/** How often a request is tried. */
const MAX_TRIES = 4;

type Body = Uint8Array<ArrayBuffer> | string;

class Bucket implements ObjectStore {
  readonly #client: AwsClient;
  /** The address of the bucket. */
  readonly #url: string;
  /** The prefix of all keys, as a path has it: percent-encoded. */
  readonly #home: string;
  /** The same as keys have it. */
  readonly #prefix: string;

  constructor({ url, keyId, secret, region }: S3Options) {
    this.#client = new AwsClient({
      accessKeyId: keyId,
      secretAccessKey: secret,
      region,
      service: "s3",
      retries: 0,
    });
    const { origin, pathname } = new URL(url);
    const [, bucket = "", ...before] = pathname.replace(/\/+$/, "").split("/");
    this.#url = `${origin}/${bucket}`;
    this.#home = before.length > 0 ? `${before.join("/")}/` : "";
    this.#prefix = decodeURIComponent(this.#home);
  }

  async write(key: string, parts: AsyncIterable<Uint8Array<ArrayBuffer>>): Promise<void> {
    let upload: ((more?: string) => string) | undefined;
    const tags: string[] = [];
    try {
      for await (const part of parts) {
        if (!upload && part.length < PART) return void (await this.#existing("PUT", this.#at(key), part));
        upload ??= await this.#beginUpload(key);
        const { headers } = await this.#existing("PUT", upload(`partNumber=${tags.length + 1}&`), part);
        tags.push(headers.get("etag") ?? "");
      }
      if (!upload) return;
      const list = tags.map((tag, i) => `<Part><PartNumber>${i + 1}</PartNumber><ETag>${tag}</ETag></Part>`);
      const body = `<CompleteMultipartUpload>${list.join("")}</CompleteMultipartUpload>`;
      const answer = await (await this.#existing("POST", upload(), body)).text();
      // The store may fail after it has sent status 200.
      if (answer.includes("<Error>")) throw new Error(`the store of files answered: ${answer.slice(0, 300)}`);
    } catch (error) {
      if (upload) await this.#send("DELETE", upload()).catch(() => {});
      throw error;
    }
  }

  async read(key: string, range?: { offset: number; length: number }): Promise<ReadableStream<Uint8Array> | undefined> {
    if (range?.length === 0) return new Blob([]).stream();
    const headers = range && { range: `bytes=${range.offset}-${range.offset + range.length - 1}` };
    const response = await this.#send("GET", this.#at(key), "", headers);
    if (response.status !== 404) return response.body ?? new Blob([]).stream();
    await response.body?.cancel();
    return undefined;
  }

  async *list(prefix: string): AsyncGenerator<StoredObject> {
    const start = this.#prefix.length;
    const query = { "list-type": "2", prefix: this.#prefix + prefix };
    for await (const entry of this.#entries(query, "Contents", [["NextContinuationToken", "continuation-token"]]))
      yield { key: inside(entry, "Key").slice(start), at: Date.parse(inside(entry, "LastModified")) };
    const uploads = { uploads: "", prefix: this.#prefix + prefix };
    for await (const entry of this.#entries(uploads, "Upload", UPLOAD_MARKERS)) {
      const key = inside(entry, "Key").slice(start) + UNFINISHED + encodeURIComponent(inside(entry, "UploadId"));
      yield { key, at: Date.parse(inside(entry, "Initiated")) };
    }
  }

  async remove(key: string): Promise<void> {
    await this.#send("DELETE", this.#at(key));
  }

  #at(key: string): string {
    return `/${this.#home}${key}`;
  }

  /** Begins an upload in parts; resolves with a function that returns its path, with more in the query. */
  async #beginUpload(key: string): Promise<(more?: string) => string> {
    const uploadId = inside(await (await this.#existing("POST", `${this.#at(key)}?uploads=`)).text(), "UploadId");
    return (more = "") => `${this.#at(key)}?${more}uploadId=${encodeURIComponent(uploadId)}`;
  }

  /** The elements `tag` of a list. `next`: the elements that say where its next page begins, and the parameters that take them. */
  async *#entries(query: Record<string, string>, tag: string, next: readonly (readonly [string, string])[]) {
    for (let more: Record<string, string> | undefined = {}; more; ) {
      const search = new URLSearchParams({ ...query, ...more });
      const text = await (await this.#existing("GET", `?${search}`)).text();
      for (const [, entry = ""] of text.matchAll(new RegExp(`<${tag}>(.*?)</${tag}>`, "gs"))) yield entry;
      const isCut = inside(text, "IsTruncated") === "true";
      more = isCut ? Object.fromEntries(next.map(([from, to]) => [to, inside(text, from)])) : undefined;
    }
  }

  /** As `#send`, for what exists. @throws {Error} also for 404 */
  async #existing(method: string, path: string, body?: Body): Promise<Response> {
    const response = await this.#send(method, path, body);
    if (response.ok) return response;
    throw new Error(`the store of files answered ${response.status}: ${(await response.text()).slice(0, 300)}`);
  }

  /** Sends a request and resolves to its answer, which may be 404. @throws {Error} with the store's words */
  async #send(method: string, path: string, body: Body = "", headers = {}): Promise<Response> {
    const bytes = typeof body === "string" ? new TextEncoder().encode(body) : body;
    // The store checks the received bytes against this hash.
    const signed = { ...headers, "x-amz-content-sha256": await sha256Of(bytes) };
    for (let n = 1; ; n++) {
      const request = { method, headers: signed, ...(method !== "GET" && { body: bytes }) };
      const answer = await this.#client.fetch(this.#url + path, request).catch((error: Error) => error);
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
}

const inside = (xml: string, tag: string): string =>
  (new RegExp(`<${tag}>(.*?)</${tag}>`, "s").exec(xml)?.[1] ?? "")
    .replaceAll("&quot;", '"')
    .replaceAll("&lt;", "<")
    .replaceAll("&gt;", ">")
    .replaceAll("&amp;", "&");
