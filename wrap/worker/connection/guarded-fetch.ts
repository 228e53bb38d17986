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
  if (!response.body) return response;
  let size = 0;
  const limit = new TransformStream<Uint8Array, Uint8Array>({
    transform(chunk, controller) {
      const bytes = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.length);
      const end = Math.max(bytes.lastIndexOf("\n\n"), bytes.lastIndexOf("\n\r\n"));
      size = end < 0 ? size + bytes.length : bytes.length - end;
      if (size > MAX_MESSAGE) controller.error(new Error(`its answer has more than ${MAX_MESSAGE} bytes`));
      else controller.enqueue(chunk);
    },
  });
  const { status, statusText, headers } = response;
  return new Response(response.body.pipeThrough(limit), { status, statusText, headers });
}
