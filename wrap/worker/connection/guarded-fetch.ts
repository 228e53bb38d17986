/** The `fetch` by which a wrapped server is reached: with the guard against private addresses, it bounds each message. */
import { type Fetch, PrivateAddress, publicFetch } from "../../../worker/public-fetch.ts";
import { MAX_MESSAGE } from "../host/host-config.ts";

export type { Fetch };

/** `allowPrivate`: the deployment says that the server's URL may lead into a private network. */
export function guardedFetch(allowPrivate: boolean): Fetch {
  const fetch = publicFetch(allowPrivate);
  return async (url, init) => bounded(await fetch(url, init).catch(explained));
}

/** @throws what it is given, of which a refusal says how to allow the address */
function explained(error: Error): never {
  const refused = [error, error.cause].find((each): each is PrivateAddress => each instanceof PrivateAddress);
  if (refused) refused.message += ": allow it with allowPrivate (--allow-private), if it is meant";
  throw error;
}

/** The same response, which fails at a message that is too long. In an event stream, an empty line ends a message. */
function bounded(response: Response): Response {
  const { body, status, statusText, headers } = response;
  const length = headers.has("content-encoding") ? null : headers.get("content-length");
  if (!body || (length !== null && Number(length) <= MAX_MESSAGE)) return response;
  const reader = body.getReader();
  let size = 0;
  const limited = new ReadableStream<Uint8Array>({
    async pull(controller) {
      const { done, value } = await reader.read();
      if (done) return controller.close();
      const bytes = Buffer.from(value.buffer, value.byteOffset, value.length);
      const end = Math.max(bytes.lastIndexOf("\n\n"), bytes.lastIndexOf("\n\r\n"));
      size = end < 0 ? size + bytes.length : bytes.length - end;
      if (size <= MAX_MESSAGE) return controller.enqueue(value);
      const error = new Error(`its answer has more than ${MAX_MESSAGE} bytes`);
      void reader.cancel(error).catch(() => {});
      controller.error(error);
    },
    cancel: (reason) => reader.cancel(reason),
  });
  return new Response(limited, { status, statusText, headers });
}
