/** The `fetch` for requests to a wrapped server. It refuses private addresses, and limits the size of each message. */
import { pipeline, type Readable } from "node:stream";
import { createBrotliDecompress, createGunzip, createInflate } from "node:zlib";
import { type Fetch, PrivateAddress, publicRequest } from "../../../worker/connection/index.ts";
import { MessageTooLong } from "../host/errors.ts";
import { MAX_MESSAGE_BYTES } from "../host/host-config.ts";

const STATUSES_WITHOUT_BODY = [204, 205, 304];

const DECOMPRESSORS = {
  gzip: createGunzip,
  "x-gzip": createGunzip,
  deflate: createInflate,
  br: createBrotliDecompress,
};

/** `allowPrivate`: the deployment says that the server's URL may lead into a private network. */
export function guardedFetch(allowPrivate: boolean): Fetch {
  const request = publicRequest(allowPrivate);
  return async (url, { method = "GET", headers: ownHeaders, body: text, signal = null } = {}) => {
    // An answer that is compressed nevertheless is decompressed, up to the size limit of a message.
    const requestHeaders = new Headers({ "user-agent": "durable-mcp-edge", "accept-encoding": "identity" });
    for (const [name, value] of new Headers(ownHeaders)) requestHeaders.set(name, value);
    const options = { method: method as "GET", headers: requestHeaders, body: text as string | null, signal };
    const { statusCode: status, statusText, headers, body: raw } = await request(url, options).catch(rethrow);
    const decompressor = DECOMPRESSORS[headers["content-encoding"] as keyof typeof DECOMPRESSORS];
    const body = decompressor ? pipeline(raw, decompressor(), () => {}) : raw;
    const init = { status, statusText, headers: new Headers(headers as Record<string, string>) };
    if (STATUSES_WITHOUT_BODY.includes(status)) await raw.dump();
    else if (/^application\/json\b/.test(init.headers.get("content-type") ?? "")) return bufferedResponse(body, init);
    else return new Response(limitMessages(body), init);
    return new Response(null, init);
  };
}

/** Throws an error of the request as `fetch` would; the refusal of a private address also says how to allow it. */
function rethrow(error: Error): never {
  if (error instanceof PrivateAddress) {
    error.message += ": allow it with allowPrivate (--allow-private), if it is meant";
    throw error;
  }
  throw new TypeError("fetch failed", { cause: error });
}

/** A response that is read without a web stream, which would be most of the cost of a small response. */
function bufferedResponse(body: Readable, init: ResponseInit): Response {
  const text = async () => {
    const parts: Buffer[] = [];
    let size = 0;
    for await (const part of body) {
      size += part.length;
      if (size > MAX_MESSAGE_BYTES) throw new MessageTooLong(MAX_MESSAGE_BYTES);
      parts.push(part);
    }
    // Without a byte order mark, which no JSON begins with.
    return new TextDecoder().decode(Buffer.concat(parts));
  };
  const json = async () => JSON.parse(await text());
  // Defined, not assigned: a web framework may have replaced Node's Response by one whose properties cannot be assigned.
  return Object.defineProperties(new Response(null, init), {
    text: { value: text, configurable: true },
    json: { value: json, configurable: true },
  });
}

/** Emits the bytes until a message is too long. In an event stream, an empty line ends a message. */
function limitMessages(body: Readable): ReadableStream<Uint8Array> {
  let size = 0;
  /** The last bytes, with which the end of a message may begin. */
  let last = "";
  return new ReadableStream<Uint8Array>({
    start(controller) {
      body.on("data", (bytes: Buffer) => {
        const end = Math.max(bytes.lastIndexOf("\n\n"), bytes.lastIndexOf("\n\r\n"));
        const startsNewMessage = /\n\r?\n/.test(last + bytes.toString("latin1", 0, 2));
        size = end >= 0 ? bytes.length - end : bytes.length + (startsNewMessage ? 0 : size);
        last = (last + bytes.subarray(-2).toString("latin1")).slice(-2);
        if (size > MAX_MESSAGE_BYTES) return void body.destroy(new MessageTooLong(MAX_MESSAGE_BYTES));
        controller.enqueue(bytes);
        if ((controller.desiredSize ?? 0) <= 0) body.pause();
      });
      body.once("end", () => controller.close());
      body.once("error", (error) => controller.error(error));
    },
    pull: () => void body.resume(),
    cancel: () => void body.destroy(),
  });
}
