/** Turns the body of a request into the body of its answer. */
import { MAX_BATCH_LINES, NDJSON, PROTOCOL_VERSION } from "../../core/resonate/index.ts";
import type { EngineRequest } from "../engine/engine.ts";
import type { Response } from "../engine/records.ts";
import type { Resonate } from "../engine/resonate.ts";
import { InvalidRequest, parseRequest } from "./requests.ts";

/** The standalone server's limit on a request. */
export const MAX_BODY_BYTES = 2 * 1024 * 1024;
export const BODY_TOO_LARGE = `A request may have ${MAX_BODY_BYTES} bytes`;
const NEWLINE_BYTE = 10;

/**
 * Returns the status with which to refuse a request with this token; undefined if the request is allowed. Called without
 * `request` if it is malformed, so that a wrong token is answered with 401 even then.
 */
export type Refuse = (auth: string | undefined, request?: EngineRequest) => 401 | 403 | undefined;

interface Answer {
  status: number;
  text: string;
  type: string;
}

/** Answers a body that, by its content type, has one request, or one request in each line. */
export async function respondTo(
  resonate: Resonate,
  body: Uint8Array,
  type: string | null | undefined,
  refuse: Refuse,
): Promise<Answer> {
  if (!type?.startsWith(NDJSON)) return answer(resonate, checkRequest(body, refuse));
  const lines = linesOf(body);
  if (!lines) return { status: 413, text: `A request may have ${MAX_BATCH_LINES} lines`, type: "text/plain" };
  const requests = lines.map((line) => checkRequest(line, refuse));
  // One wrong token refuses the whole body with one answer: many guesses of a token at once must reveal no more than one guess.
  const unauthorized = requests.find((each) => "response" in each && each.response.head.status === 401);
  if (unauthorized) return answer(resonate, unauthorized);
  const answers = await Promise.all(requests.map((each) => answer(resonate, each)));
  return { status: 200, text: answers.map(({ text }) => text).join("\n"), type: NDJSON };
}

/** The lines of a body; undefined if there are more than {@link MAX_BATCH_LINES}. */
function linesOf(body: Uint8Array): Uint8Array[] | undefined {
  const lines: Uint8Array[] = [];
  for (let from = 0; from <= body.length;) {
    const end = body.indexOf(NEWLINE_BYTE, from);
    lines.push(body.subarray(from, end < 0 ? body.length : end));
    if (lines.length > MAX_BATCH_LINES) return undefined;
    from = end < 0 ? body.length + 1 : end + 1;
  }
  return lines;
}

/** An allowed request, or the response that refuses it. */
type CheckedRequest = { corrId: string } & ({ request: EngineRequest } | { response: Response });

function checkRequest(body: Uint8Array, refuse: Refuse): CheckedRequest {
  try {
    const request = parseRequest(body);
    const { kind, head } = request;
    const status = refuse(head.auth, request);
    return status === undefined ? { corrId: head.corrId, request } : refusal(kind, head.corrId, status);
  } catch (error) {
    if (!(error instanceof InvalidRequest)) throw error;
    const { status, kind, corrId, auth, message } = error;
    if (refuse(auth) === 401) return refusal(kind, corrId, 401);
    return { corrId, response: { kind, head: { status }, data: message } };
  }
}

const refusal = (kind: string, corrId: string, status: 401 | 403): CheckedRequest => ({
  corrId,
  response: { kind, head: { status }, data: status === 401 ? "Unauthorized" : "Forbidden" },
});

async function answer(resonate: Resonate, request: CheckedRequest): Promise<Answer> {
  const { kind, head, data } = "response" in request ? request.response : await resonate.submit(request.request);
  const text = JSON.stringify({
    kind,
    head: { corrId: request.corrId, status: head.status, version: PROTOCOL_VERSION },
    data,
  });
  return { status: head.status, text, type: "application/json" };
}
