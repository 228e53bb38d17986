/** One request of the protocol to its answer, as both go over the wire. */
import type { Request } from "@resonatehq/sdk";
import { PROTOCOL_VERSION } from "../../core/resonate/protocol.ts";
import { InvalidRequest, parseRequest } from "./requests.ts";
import type { Resonate, Response } from "./resonate.ts";

/** The largest request, in bytes; the real server's limit. */
export const MAX_BODY = 2 * 1024 * 1024;
export const TOO_LARGE = `A request may have ${MAX_BODY} bytes`;

/** Says of a request what it is refused with; undefined when it may be made. */
export type Refuse = (request: Request) => 401 | 403 | undefined;

/** Answers a request's body, unless `refuse` has something against it. */
export async function respond(
  resonate: Resonate,
  body: Uint8Array,
  refuse: Refuse,
): Promise<{ status: number; text: string }> {
  const { corrId, response } = await answer(resonate, body, refuse);
  const { kind, head, data } = response;
  const text = JSON.stringify({ kind, head: { corrId, status: head.status, version: PROTOCOL_VERSION }, data });
  return { status: head.status, text };
}

async function answer(
  resonate: Resonate,
  body: Uint8Array,
  refuse: Refuse,
): Promise<{ corrId: string; response: Response }> {
  try {
    const request = parseRequest(body);
    const { kind, head } = request;
    const status = refuse(request);
    if (status !== undefined) {
      const data = status === 401 ? "Unauthorized" : "Forbidden";
      return { corrId: head.corrId, response: { kind, head: { status }, data } };
    }
    return { corrId: head.corrId, response: await resonate.submit(request) };
  } catch (error) {
    if (!(error instanceof InvalidRequest)) throw error;
    const { status, kind, corrId, message } = error;
    return { corrId, response: { kind, head: { status }, data: message } };
  }
}
