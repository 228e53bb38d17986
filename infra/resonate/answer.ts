/** One request of the protocol to its answer, as both go over the wire. */
import { PROTOCOL_VERSION } from "../../core/resonate/protocol.ts";
import { InvalidRequest, parseRequest } from "./requests.ts";
import type { Resonate, Response } from "./resonate.ts";

/** The largest request, in bytes; the real server's limit. */
export const MAX_BODY = 2 * 1024 * 1024;
export const TOO_LARGE = `A request may have ${MAX_BODY} bytes`;

/** Answers a request's body. `mayAsk` says of what the request shows as its token whether it is let in. */
export async function respond(
  resonate: Resonate,
  body: Uint8Array,
  mayAsk: (token: string | undefined) => boolean,
): Promise<{ status: number; text: string }> {
  const { corrId, response } = await answer(resonate, body, mayAsk);
  const { kind, head, data } = response;
  const text = JSON.stringify({ kind, head: { corrId, status: head.status, version: PROTOCOL_VERSION }, data });
  return { status: head.status, text };
}

async function answer(
  resonate: Resonate,
  body: Uint8Array,
  mayAsk: (token: string | undefined) => boolean,
): Promise<{ corrId: string; response: Response }> {
  try {
    const request = parseRequest(body);
    const { kind, head } = request;
    if (!mayAsk(head.auth)) {
      return { corrId: head.corrId, response: { kind, head: { status: 401 }, data: "Unauthorized" } };
    }
    return { corrId: head.corrId, response: await resonate.submit(request) };
  } catch (error) {
    if (!(error instanceof InvalidRequest)) throw error;
    const { status, kind, corrId, message } = error;
    return { corrId, response: { kind, head: { status }, data: message } };
  }
}
