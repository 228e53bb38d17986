import type { EdgeFeature } from "../../core/feature.ts";
import type { Message, Method, RequestCost, RequestScope } from "../../core/tools/index.ts";
import type { createSdk } from "./answer-with-sdk.ts";
import { invalidRequest, notAllowed, readBody } from "./body.ts";
import { CallsInFlight } from "./in-flight.ts";
import { asMessage, asPlain, isInitialized, withName } from "./message.ts";
import { createMethods, type Methods, type Offer } from "./methods.ts";
import { Responder } from "./respond.ts";
import { requestOfPlain } from "./tool-call.ts";

/** Serves MCP over streamable HTTP, statelessly: the 2026-07-28 revision, and 2025-era clients at the same URL. */
export class McpEndpoint {
  readonly #offer: Offer;
  readonly #methods: Methods;
  readonly #responder: Responder;
  readonly #inFlight = new CallsInFlight();
  #loadedSdk: ReturnType<typeof createSdk> | undefined;

  constructor(offer: Offer) {
    this.#offer = offer;
    this.#methods = createMethods(offer, this.#inFlight);
    this.#responder = new Responder(offer.identity.info);
  }

  async serve(request: Request, scope: RequestScope): Promise<Response> {
    // Clients of 2025 ask for the stream of a session with GET, and end a session with DELETE. A session is an id alone.
    if (request.method === "GET" || request.method === "DELETE") return notAllowed();
    const body = await readBody(request);
    if (body instanceof Response) return body;
    if (body instanceof Request) return (await this.#sdk())({ request: body, scope });
    const { parsed, weight } = body;
    const message = asMessage(parsed);
    if (!message) return this.#receive(request, parsed, weight, scope);
    const method = this.#methods.get(message.method);
    const cost: RequestCost = { weight: 1, access: [], streams: false, ...method?.cost?.(message.params) };
    cost.weight = Math.max(cost.weight, weight);
    const answer = async () => (await scope.checkLimits(cost)) ?? this.#answer(request, message, method, cost, scope);
    return this.#note(message, scope, answer);
  }

  /** Answers a request: by its method's row in the table, or else by the SDK. */
  async #answer(
    request: Request,
    message: Message,
    method: Method | undefined,
    { streams }: RequestCost,
    scope: RequestScope,
  ): Promise<Response> {
    const plain = method?.form && asPlain(request.headers, message, method.form);
    const sdk = async (streamed = false, signal = request.signal, onEnd?: () => void) => {
      const named = withName(request, message);
      const { url, headers, method } = named;
      const bounded = signal === request.signal ? named : new Request(url, { method, headers, signal });
      return (await this.#sdk())({ request: bounded, scope, parsedBody: message, streamed, onEnd });
    };
    const respond = async (result: () => Promise<object>) =>
      plain && this.#responder.respond(message.id, plain, result());
    const isServed = plain && (method?.era === undefined || method.era === plain.era);
    const handle = isServed ? method?.handle : undefined;
    const response = method?.answer
      ? await method.answer({ message, plain, streams, request, scope, respond, sdk })
      : handle && plain && (await respond(() => handle(message.params, requestOfPlain(plain, scope, request.signal))));
    return response ?? sdk();
  }

  /** Receives what is no request: a notification, or a response to a question. */
  async #receive(request: Request, parsed: unknown, weight: number, scope: RequestScope): Promise<Response> {
    const { features, calls } = this.#offer;
    const response = features.reduce<ReturnType<NonNullable<EdgeFeature["responseIn"]>>>(
      (found, feature) => found ?? feature.responseIn?.(parsed),
      undefined,
    );
    const refused = await scope.checkLimits({ weight, access: response ? ["write"] : [], streams: false });
    if (refused) return refused;
    this.#inFlight.cancel(scope, parsed);
    if (!response) {
      const isPlain = isInitialized(request.headers, parsed);
      return isPlain
        ? new Response(null, { status: 202 })
        : (await this.#sdk())({ request, scope, parsedBody: parsed });
    }
    return this.#note(response, scope, async () => {
      try {
        await calls.explainOutage(response.take(scope, request.signal), request.signal);
        return new Response(null, { status: 202 });
      } catch (error) {
        return invalidRequest((error as Error).message);
      }
    });
  }

  /** Answers a request, and notes in the log line, and for features, what it is. */
  #note(
    { method, params }: Pick<Message, "method" | "params">,
    scope: RequestScope,
    answer: () => Promise<Response>,
  ): Promise<Response> {
    const { requestLog } = scope;
    const { calls, features } = this.#offer;
    requestLog.method = method;
    if (method === "tools/call" && calls.find(params.name)) requestLog.tool = String(params.name);
    const answered = answer();
    for (const feature of features) feature.note?.(requestLog.tool ?? method, params, scope, answered);
    return answered;
  }

  async #sdk() {
    this.#loadedSdk ??= (await import("./answer-with-sdk.ts")).createSdk(this.#offer, this.#methods);
    return this.#loadedSdk;
  }
}
