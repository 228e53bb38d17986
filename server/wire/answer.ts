/** One request of the protocol to its answer, as both go over the wire. */
import type { Request } from "@resonatehq/sdk";
import { LINES, MOST_LINES } from "../../core/store/batch-lines.ts";
import { PROTOCOL_VERSION } from "../../core/store/protocol.ts";
import type { Resonate, Response } from "../resonate.ts";
import { InvalidRequest, parseRequest } from "./requests.ts";

/** The largest request, in bytes; the real server's limit. */
export const MAX_BODY = 2 * 1024 * 1024;
const NEWLINE = 10;
export const TOO_LARGE = `A request may have ${MAX_BODY} bytes`;

/**
 * Says what a request with this token is refused with; undefined when it may be made. Of one that is none by its form it is asked
 * as well, without it: strangers are told that they are, whatever they send.
 */
export type Refuse = (auth: string | undefined, request?: Request) => 401 | 403 | undefined;

/** What a body is answered with. */
interface Answer {
  status: number;
  text: string;
  type: string;
}

/** Answers a request's body of this type, or each of the requests on its lines, unless `refuse` has something against it. */
export async function respondTo(
  resonate: Resonate,
  body: Uint8Array,
  type: string | null | undefined,
  refuse: Refuse,
): Promise<Answer> {
  if (!type?.startsWith(LINES)) return answer(resonate, read(body, refuse));
  const lines = linesOf(body);
  if (!lines) return { status: 413, text: `A request may have ${MOST_LINES} lines`, type: "text/plain" };
  const asked = lines.map((line) => read(line, refuse));
  // Whoever guesses tokens is told no more for many guesses at once than for one, and nothing is done.
  const stranger = asked.find((each) => "response" in each && each.response.head.status === 401);
  if (stranger) return answer(resonate, stranger);
  const answers = await Promise.all(asked.map((each) => answer(resonate, each)));
  return { status: 200, text: answers.map(({ text }) => text).join("\n"), type: LINES };
}

/** Undefined when there are too many. */
function linesOf(body: Uint8Array): Uint8Array[] | undefined {
  const lines: Uint8Array[] = [];
  for (let from = 0; from <= body.length; ) {
    const end = body.indexOf(NEWLINE, from);
    lines.push(body.subarray(from, end < 0 ? body.length : end));
    if (lines.length > MOST_LINES) return undefined;
    from = end < 0 ? body.length + 1 : end + 1;
  }
  return lines;
}

/** A request that may be made, or what it is refused with. */
type Asked = { corrId: string } & ({ request: Request } | { response: Response });

function read(body: Uint8Array, refuse: Refuse): Asked {
  try {
    const request = parseRequest(body);
    const { kind, head } = request;
    const status = refuse(head.auth, request);
    return status === undefined ? { corrId: head.corrId, request } : refused(kind, head.corrId, status);
  } catch (error) {
    if (!(error instanceof InvalidRequest)) throw error;
    const { status, kind, corrId, auth, message } = error;
    if (refuse(auth) === 401) return refused(kind, corrId, 401);
    return { corrId, response: { kind, head: { status }, data: message } };
  }
}

const refused = (kind: string, corrId: string, status: 401 | 403): Asked => ({
  corrId,
  response: { kind, head: { status }, data: status === 401 ? "Unauthorized" : "Forbidden" },
});

async function answer(resonate: Resonate, asked: Asked): Promise<Answer> {
  const { kind, head, data } = "response" in asked ? asked.response : await resonate.submit(asked.request);
  const text = JSON.stringify({
    kind,
    head: { corrId: asked.corrId, status: head.status, version: PROTOCOL_VERSION },
    data,
  });
  return { status: head.status, text, type: "application/json" };
}
