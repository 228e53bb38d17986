/**
 * JSON-RPC batches, which only the 2025-03-26 revision has, and a request that names none is taken for one of it. Each
 * member is served as if it had come alone, under limits that are the whole request's.
 */
import { createParser } from "eventsource-parser";
import { eventStream } from "../http/event-stream.ts";
import type { RequestScope } from "../http/request.ts";
import { invalidRequest } from "./body.ts";

const REVISION = "2025-03-26";

/** What the members of a batch may touch, all together: as much as one call. */
const MOST = 100;

/** How many of them may wait: each holds a connection to the Resonate server. */
const MOST_WAITING = 1;

/** The place of a member's stream: the batch has one for all. */
const NONE = () => ({ renew() {}, release() {} });

export interface Batch {
  /** Of any JSON. */
  parsed: readonly unknown[];
  weight: number;
  waiting: number;
}

export interface BatchServer {
  /** The answer that refuses a batch of this weight, or undefined. */
  admit(weight: number): Promise<Response | undefined>;
  serve(member: unknown, scope: RequestScope): Promise<Response>;
  /** The SDK's answer to the request. */
  sdk(): Promise<Response>;
}

export async function serveBatch(
  request: Request,
  { parsed, weight, waiting }: Batch,
  scope: RequestScope,
  { admit, serve, sdk }: BatchServer,
): Promise<Response> {
  scope.line.batch = parsed.length;
  const revision = request.headers.get("mcp-protocol-version");
  if (revision !== null && revision !== REVISION) {
    return invalidRequest("this revision of the protocol has no batches. Send one message a request");
  }
  const accept = request.headers.get("accept") ?? "";
  if (!accept.includes("application/json") || !accept.includes("text/event-stream")) return sdk();
  if (parsed.length === 0) return invalidRequest("a batch of nothing");
  if (parsed.some(isHandshake)) return invalidRequest("`initialize` may not be part of a batch");
  if (weight > MOST) return invalidRequest(`a batch may touch ${MOST} jobs; this one touches ${weight}`);
  if (waiting > MOST_WAITING) {
    return invalidRequest(
      `${MOST_WAITING} call of a batch may wait; in this one ${waiting} would. Await the jobs together`,
    );
  }
  const refused = await admit(weight);
  if (refused) return refused;
  const asks = parsed.filter(isAnswered);
  if (asks.length === 0) return new Response(null, { status: 202 });
  return eventStream(
    async (send) => {
      await Promise.all(
        asks.map(async (member) => {
          const line = scope.line.member();
          const response = await serve(member, { ...scope, line, place: NONE });
          line.answered(response.status);
          await forward(response, send);
        }),
      );
    },
    request.signal,
    scope,
  );
}

function isHandshake(member: unknown): boolean {
  return typeof member === "object" && member !== null && "method" in member && member.method === "initialize";
}

/** Whether a member is one to answer: a request, or what is no message at all. */
function isAnswered(member: unknown): boolean {
  if (typeof member !== "object" || member === null) return true;
  return "method" in member ? "id" in member : !("result" in member || "error" in member);
}

/** Sends on the messages of an answer, which is JSON, a stream of events or nothing. */
async function forward(response: Response, send: (message: object) => void): Promise<void> {
  if (!response.headers.get("content-type")?.startsWith("text/event-stream")) {
    const text = await response.text();
    if (text !== "") send(JSON.parse(text));
    return;
  }
  const parser = createParser({
    onEvent: ({ data }) => {
      if (data !== "") send(JSON.parse(data));
    },
  });
  const decoder = new TextDecoder();
  for await (const chunk of response.body ?? []) parser.feed(decoder.decode(chunk, { stream: true }));
}
