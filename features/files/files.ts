/** Files of jobs for clients: lines and links in answers, downloads, resources. */
import { type Caller, type FileReference, filesIn, isText, partsOfUri, sizeInWords } from "../../core/author/index.ts";
import type { RemoteStore } from "../../core/jobs/index.ts";
import { bytesToBase64, splitGeneration } from "../../core/resonate/index.ts";
import { CARD_FILES, type CallToolResult, type FileView, type StreamSlot } from "../../core/tools/index.ts";
import type { RefusalOf } from "../../functions/auth/admission.ts";
import type { Seal } from "../../functions/auth/seal.ts";
import { clientAddress } from "../../functions/http/client-address.ts";
import { limitedResponse, type RateLimit } from "../../functions/http/limits.ts";
import type { RefusedTries } from "../../functions/http/refused-tries.ts";
import { bodyOf } from "./download.ts";
import { type Description, type FileStorage, folderOf } from "./kept-files.ts";
import { type EdgeFileBindings, fileStorageOf } from "./kept.ts";
import { bytesOf } from "./storage/objects.ts";

/** How long an address is valid, in milliseconds. */
const ADDRESS_VALIDITY_MS = 24 * 3_600_000;

/** The most files that an answer names, and a page shows. */
const MAX_FILES = 20;

/** The largest file that `resources/read` gives, in bytes. */
const MAX_RESOURCE_BYTES = 1_000_000;

const SEAL_PURPOSE = "file";

/** Makes and opens the addresses of files. */
interface FilePages {
  readonly config: { PUBLIC_URL?: string | undefined; VIEW_LINKS: "on" | "off" };
  readonly seal: Seal | undefined;
}

/** What a download needs. */
export interface DownloadOptions {
  /** The jobs of the deployment. */
  store: RemoteStore;
  tries: RefusedTries;
  limit: RateLimit | undefined;
  /** Bounds how many downloads of one caller's files run at once. */
  slots: { take(caller: string): StreamSlot | undefined; refusal(): Response };
  refusalOf: RefusalOf;
}

/** Loads the code for files, which is needed only where a job has one. */
export type LoadFiles = () => Promise<Files>;

export class Files {
  readonly #pages: FilePages;
  readonly #storage: FileStorage | undefined;

  constructor(env: EdgeFileBindings, pages: FilePages) {
    this.#pages = pages;
    this.#storage = fileStorageOf(env);
  }

  /** The answer for a card, with the addresses of the card's files. */
  async withAddresses<Result extends CallToolResult>(result: Result, caller: Caller): Promise<Result> {
    const card = result.structuredContent as { [CARD_FILES]?: FileReference[] };
    const files = card[CARD_FILES];
    if (!files) return result;
    const until = Date.now() + ADDRESS_VALIDITY_MS;
    const withAddresses = files.map(async (file) => ({ ...file, url: await this.#urlOf(file.uri, caller, until) }));
    return { ...result, structuredContent: { ...card, [CARD_FILES]: await Promise.all(withAddresses) } };
  }

  /** The result with a line for each file that `value` refers to and, with `links`, a resource link. */
  async withFileLinks<Result extends CallToolResult>(
    result: Result,
    value: unknown,
    caller: Caller,
    links: boolean,
  ): Promise<Result> {
    const until = Date.now() + ADDRESS_VALIDITY_MS;
    const files = filesIn(value, MAX_FILES);
    const content = await Promise.all(
      files.map(async ({ uri, name, mimeType, size }) => {
        const url = await this.#urlOf(uri, caller, until);
        const address = url === undefined ? uri : `${url} (until ${new Date(until).toISOString()})`;
        const text = { type: "text" as const, text: `${name}, ${mimeType}, ${sizeInWords(size)}: ${address}` };
        return links ? [text, { type: "resource_link" as const, uri, name, mimeType, size }] : [text];
      }),
    );
    return { ...result, content: [...result.content, ...content.flat()] };
  }

  /** The files that a value refers to, for the page of its job; with `job`, only the files of that job and its generations. */
  async viewsIn(value: unknown, caller: Caller, job?: string): Promise<FileView[]> {
    const until = Date.now() + ADDRESS_VALIDITY_MS;
    const isShown = ({ uri }: FileReference) =>
      job === undefined || splitGeneration(partsOfUri(uri)?.job ?? "").base === splitGeneration(job).base;
    const files = filesIn(value).filter(isShown).slice(0, MAX_FILES);
    const views = files.map(async ({ uri, name, mimeType, size }) => {
      const path = await this.#pathOf(uri, caller, until);
      return path === undefined ? [] : [{ uri, name, mimeType, size, path }];
    });
    return (await Promise.all(views)).flat();
  }

  /** The address of a file; undefined where clients get no addresses. */
  async #urlOf(uri: string, caller: Caller, until: number): Promise<string | undefined> {
    const { PUBLIC_URL, VIEW_LINKS } = this.#pages.config;
    if (PUBLIC_URL === undefined || VIEW_LINKS === "off") return undefined;
    const path = await this.#pathOf(uri, caller, until, true);
    return path && new URL(path, PUBLIC_URL).href;
  }

  /** `isLink`: the address is given away, and is void while links are off. Others are for pages that the caller sees. */
  async #pathOf(uri: string, caller: Caller, until: number, isLink = false): Promise<string | undefined> {
    const sealed = await this.#pages.seal?.close(SEAL_PURPOSE, { uri, caller, isLink }, until);
    return sealed && `/files/${sealed}`;
  }

  /** Serves a file at its address. Anybody with the address may read the file, as its caller, until the address expires. */
  async download(request: Request, sealed: string, options: DownloadOptions): Promise<Response> {
    const opened = await this.#pages.seal?.open(SEAL_PURPOSE, sealed);
    const { uri, caller, isLink } = (opened?.value ?? {}) as { uri: string; caller: Caller; isLink: boolean };
    const isOff = isLink && this.#pages.config.VIEW_LINKS === "off";
    if (!opened || isOff || (await options.refusalOf(caller.key)) !== undefined) {
      options.tries.add(request);
      return refusal(404, "This address is void, or its time is over.");
    }
    const limitKey = `files of ${caller.key || (clientAddress(request) ?? "")}`;
    const limited = await options.limit?.(limitKey, { weight: 1 });
    if (limited) return limitedResponse(limited);
    const found = await this.#find(options.store.as(caller, crypto.randomUUID()), uri, request.signal);
    if (!found) return refusal(404, "The file is gone.");
    const { key, description } = found;
    const { size, sha256 } = description;
    const etag = `"${sha256}"`;
    const headers = headersOf(description, etag);
    if (request.headers.get("if-none-match")?.includes(etag)) return new Response(null, { status: 304, headers });
    const range = rangeOf(request.headers, size, etag);
    if (range === "none") {
      headers.set("content-range", `bytes */${size}`);
      return new Response(null, { status: 416, headers });
    }
    const { from, to } = range ?? { from: 0, to: size };
    headers.set("content-length", String(to - from));
    if (range) headers.set("content-range", `bytes ${from}-${to - 1}/${size}`);
    const status = range ? 206 : 200;
    if (request.method === "HEAD") return new Response(null, { status, headers });
    const slot = options.slots.take(limitKey);
    if (!slot) return options.slots.refusal();
    const bytes = await this.#storage?.bytes(key, description, { from, to });
    if (!bytes) slot.release();
    return bytes
      ? new Response(bodyOf(bytes, fixedLength(to - from), slot), { status, headers })
      : refusal(404, "The file is gone.");
  }

  /** A small file as a resource, or a refusal. Not thrown: this module may be bundled apart, with its own error classes. */
  async resource(store: RemoteStore, uri: string, caller: Caller, signal?: AbortSignal) {
    const found = await this.#find(store, uri, signal);
    if (found && found.description.size > MAX_RESOURCE_BYTES) {
      const url = await this.#urlOf(uri, caller, Date.now() + ADDRESS_VALIDITY_MS);
      const at = url === undefined ? "" : ` Download it: ${url}`;
      return {
        refusal: `The file has ${found.description.size} bytes; up to ${MAX_RESOURCE_BYTES} are given as a resource.${at}`,
      };
    }
    const stream = found && (await this.#storage?.read(found.key, found.description));
    if (!found || !stream) return { refusal: `Resource not found: ${uri}` };
    const { mimeType } = found.description;
    const bytes = await bytesOf(stream);
    const text = isText(mimeType) ? textOf(bytes) : undefined;
    const content = text === undefined ? { blob: bytesToBase64(bytes) } : { text };
    return { contents: [{ uri, mimeType, ...content }], cacheScope: "private" as const, ttlMs: ADDRESS_VALIDITY_MS };
  }

  /** A file of a job that the caller of `store` may see. */
  async #find(
    store: RemoteStore,
    uri: string,
    signal?: AbortSignal,
  ): Promise<{ key: string; description: Description } | undefined> {
    const parts = partsOfUri(uri);
    const job = parts && this.#storage && (await store.get(parts.job, signal));
    if (!job) return undefined;
    const key = `${await folderOf(job.id)}/${parts.id}`;
    const description = await this.#storage?.describe(key);
    return description && { key, description };
  }
}

/** Undefined for bytes that would not come back from the text unchanged. */
function textOf(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

const refusal = (status: number, error: string) =>
  Response.json({ error }, { status, headers: { "cache-control": "no-store" } });

/** The content of a file is not trusted: browsers must neither run it nor treat it as another type than the declared one. */
function headersOf({ name, mimeType }: Description, etag: string): Headers {
  const isPlain = /^[\w.+-]+\/[\w.+-]+(; ?charset=[\w-]+)?$/.test(mimeType);
  const plain = name.replace(/[^\w.() -]/g, "_");
  const encoded = encodeURIComponent(name).replace(/['()*]/g, (each) =>
    `%${each.charCodeAt(0).toString(16)}`.toUpperCase(),
  );
  return new Headers({
    "accept-ranges": "bytes",
    "cache-control": "private, max-age=600",
    "content-disposition": `attachment; filename="${plain}"; filename*=UTF-8''${encoded}`,
    "content-security-policy": "sandbox; default-src 'none'",
    "content-type": isPlain ? mimeType : "application/octet-stream",
    "cross-origin-resource-policy": "same-origin",
    etag,
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
  });
}

/** The range that a request asks for; undefined for the whole, `none` for one that the file does not have. */
function rangeOf(headers: Headers, size: number, etag: string): { from: number; to: number } | "none" | undefined {
  const [, first, last] = /^bytes=(\d*)-(\d*)$/.exec(headers.get("range") ?? "") ?? [];
  const condition = headers.get("if-range");
  if (first === undefined || (first === "" && last === "") || (condition !== null && condition !== etag))
    return undefined;
  const from = first === "" ? Math.max(0, size - Number(last)) : Number(first);
  const to = first === "" || last === "" ? size : Math.min(size, Number(last) + 1);
  return from < to ? { from, to } : "none";
}

/** The stream with which workerd declares the length of a body. */
function fixedLength(length: number): TransformStream<Uint8Array, Uint8Array> {
  const { FixedLengthStream } = globalThis as unknown as {
    FixedLengthStream: new (length: number) => TransformStream<Uint8Array, Uint8Array>;
  };
  return new FixedLengthStream(length);
}
