import { MAX_BODY, TOO_LARGE } from "../wire/answer.ts";

/** How long a body may take to arrive, in milliseconds. */
const TIME_LIMIT = 30_000;

/** A request's body, or the answer to one that is too large or too slow. */
export async function readBody(request: Request): Promise<Uint8Array | Response> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<Response>((resolve) => {
    timer = setTimeout(() => resolve(new Response("408 Request Timeout", { status: 408 })), TIME_LIMIT);
  });
  const body = await Promise.race([whole(request), late]).finally(() => clearTimeout(timer));
  return body ?? new Response(TOO_LARGE, { status: 413 });
}

/** Undefined when the body is too large. */
async function whole(request: Request): Promise<Uint8Array | undefined> {
  const length = request.headers.get("content-length");
  if (Number(length ?? 0) > MAX_BODY) return undefined;
  // As the edge reads it: see `readBytes`.
  if (length !== null) return new Uint8Array(await request.arrayBuffer());
  const chunks: Uint8Array<ArrayBuffer>[] = [];
  let size = 0;
  for await (const chunk of request.body ?? []) {
    size += chunk.length;
    if (size > MAX_BODY) return undefined;
    chunks.push(chunk as Uint8Array<ArrayBuffer>);
  }
  return new Uint8Array(await new Blob(chunks).arrayBuffer());
}
