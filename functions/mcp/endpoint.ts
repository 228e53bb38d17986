import { TRAILED } from "../../features/operators/calls.ts";
import { loadSdk } from "../http/load-sdk.ts";
import type { Demand, RequestScope } from "../http/scope.ts";
import { createSdk } from "./answer-with-sdk.ts";
import { invalidRequest, notAllowed, readBody } from "./body.ts";
import { CallsInFlight } from "./in-flight.ts";
import { asMessage, asPlain, isInitialized, type Message, withName } from "./message.ts";
import { answerIn, createMethods, type Offered } from "./methods.ts";

/** Serves MCP over streamable HTTP, statelessly: the 2026-07-28 revision, and 2025-era clients at the same URL. */
export function createMcp(offered: Offered): (request: Request, scope: RequestScope) => Promise<Response> {
  const { calls, trail } = offered;
  const inFlight = new CallsInFlight();
  const methods = createMethods(offered, inFlight);

  let loaded: ReturnType<typeof createSdk> | undefined;
  const bySdk = async () => {
    loaded ??= createSdk(await loadSdk(), offered);
    return loaded;
  };

  const note = ({ line, caller, waitUntil }: RequestScope, { method, params }: Pick<Message, "method" | "params">) => {
    line.method = method;
    line.trace(Object(params._meta).traceparent);
    if (method === "tools/call" && calls.find(params.name)) line.tool = String(params.name);
    const what = line.tool ?? method;
    if (trail && TRAILED.includes(what)) waitUntil(trail(caller.label, what, params));
  };

  /** The demands of a message; `message` is undefined for an answer to a question, and for all else that is no request. */
  const demandOf = (message: Message | undefined, parsed: unknown): Demand => ({
    ...{ weight: 1, access: !message && answerIn(parsed) ? ["write"] : [], streams: false },
    ...(message && methods.get(message.method)?.demand?.(message.params)),
  });

  /** Answers one message: by its method's row in the table, or else by the SDK. */
  const answer = async (
    request: Request,
    parsed: unknown,
    message: Message | undefined,
    { streams }: Demand,
    scope: RequestScope,
  ) => {
    const sdk = async (streamed = false, signal = request.signal, onEnd?: () => void) => {
      const named = message ? withName(request, message) : request;
      const { url, headers, method } = named;
      const judged = signal === request.signal ? named : new Request(url, { method, headers, signal });
      return (await bySdk())({ request: judged, scope, parsedBody: parsed, streamed, onEnd });
    };
    if (!message) {
      inFlight.cancel(scope, parsed);
      const given = answerIn(parsed);
      if (!given) return isInitialized(request.headers, parsed) ? new Response(null, { status: 202 }) : sdk();
      const { requestState, responses } = given;
      note(scope, { method: "tasks/update", params: { taskId: requestState, inputResponses: responses } });
      const taken = calls.explained(calls.answer(requestState, responses, scope, request.signal), request.signal);
      return taken.then(
        () => new Response(null, { status: 202 }),
        (error: Error) => invalidRequest(error.message),
      );
    }
    const method = methods.get(message.method);
    const plain = method?.form && asPlain(request.headers, message, method.form);
    return (await method?.answer?.({ message, plain, streams, request, scope, sdk })) ?? sdk();
  };

  return async (request, scope) => {
    // Clients of 2025 ask for the stream of a session with GET, and end a session with DELETE. There are no sessions.
    if (request.method === "GET" || request.method === "DELETE") return notAllowed();
    const body = await readBody(request);
    if (body instanceof Response) return body;
    if (body instanceof Request) return (await bySdk())({ request: body, scope });
    const { parsed } = body;
    const message = asMessage(parsed);
    if (message) note(scope, message);
    const demand = demandOf(message, parsed);
    const refused = await scope.admit({ ...demand, weight: Math.max(demand.weight, body.weight) });
    return refused ?? answer(request, parsed, message, demand, scope);
  };
}
