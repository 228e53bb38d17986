/** JSON-RPC batches, which only revision 2025-03-26 has; a request that names no revision may be of that one. */
import { isStream } from "../http/event-stream.ts";
import type { Demand, RequestScope } from "../http/scope.ts";
import { invalidRequest } from "./body.ts";
import { asMessage, type Message } from "./message.ts";

const REVISION = "2025-03-26";

/** What the messages of a batch may cost together: as much as one call. */
const MOST = 100;

interface BatchServer {
  demandOf(message: Message | undefined, member: unknown): Demand;
  answer(member: unknown, message: Message | undefined, demand: Demand, scope: RequestScope): Promise<Response>;
}

/** Answers the messages of a batch one after another, with a list of their responses. */
export async function serveBatch(
  batch: unknown[],
  /** What its size alone costs. */
  least: number,
  headers: Headers,
  scope: RequestScope,
  server: BatchServer,
) {
  scope.line.batch = batch.length;
  if ((headers.get("mcp-protocol-version") ?? REVISION) !== REVISION) {
    return invalidRequest("this revision of the protocol has no batches. Send one message a request");
  }
  if (batch.length === 0 || batch.length > MOST) return tooMuch(`has ${batch.length} messages`);
  const members = batch.map((member) => {
    const message = asMessage(member);
    return { member, message, demand: server.demandOf(message, member) };
  });
  if (members.some(({ message }) => message?.method === "initialize")) {
    return invalidRequest("`initialize` may not be part of a batch");
  }
  const demands = members.map(({ demand }) => demand);
  const waiting = demands.filter(({ streams }) => streams).length;
  const weight = demands.reduce((sum, demand) => sum + demand.weight, 0);
  if (weight > MOST || waiting > 1) return tooMuch(`touches ${weight}, and ${waiting} of its calls would wait`);
  const refused = await scope.admit({
    weight: Math.max(weight, least),
    access: demands.flatMap(({ access }) => access),
    streams: waiting > 0,
  });
  if (refused) return refused;
  const responses: unknown[] = [];
  for (const { member, message, demand } of members) {
    const line = scope.line.member();
    const own = {
      ...scope,
      line,
      // It may change while a call waits.
      get until() {
        return scope.until;
      },
    };
    const response = await server.answer(member, message, demand, own);
    line.answered(response.status);
    responses.push(...(await responsesIn(response)));
  }
  return responses.length === 0 ? new Response(null, { status: 202 }) : Response.json(responses);
}

const tooMuch = (what: string) =>
  invalidRequest(`a batch may touch 1 to ${MOST} jobs, and one of its calls may wait; this one ${what}`);

/** The JSON-RPC responses in an HTTP response, which is JSON, a stream or empty; a stream's progress is left out. */
async function responsesIn(response: Response): Promise<{ id?: unknown }[]> {
  const text = await response.text();
  const parts = isStream(response) ? [...text.matchAll(/^data: (.+)$/gm)].map(([, data = ""]) => data) : [text];
  return parts
    .filter(Boolean)
    .map((part) => JSON.parse(part))
    .filter((message) => "id" in message);
}
