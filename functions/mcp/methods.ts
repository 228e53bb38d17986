/**
 * The methods of the server: what a request for each of them demands, and how it is answered. Plain requests are answered
 * without the SDK, whose server and transport cost several times as much as the call itself.
 */
import { isRecord } from "../../core/resonate/json.ts";
import { jobNames } from "../../core/tools/arguments.ts";
import { ErrorCode, isInputRequired, ProtocolError, REVISION, SERVER_INFO } from "../../core/tools/mcp.ts";
import type { Cards } from "../../features/cards/cards.ts";
import type { Events } from "../../features/events/methods.ts";
import type { LoadFiles } from "../../features/files/files.ts";
import { getTask, type TaskService } from "../../features/tasks/service.ts";
import { MAX_RESOURCES, MAX_TASKS, showsForms } from "../../features/tasks/task.ts";
import {
  accessOf,
  type CallRequest,
  type CallResult,
  reporting,
  saidInMeta,
  type ToolCalls,
} from "../calls/tool-calls.ts";
import { eventStream } from "../http/event-stream.ts";
import type { Demand, RequestScope } from "../http/scope.ts";
import { loadLazy } from "../load-lazy.ts";
import { CACHE, capabilities, type Identity, listsOf } from "./identity.ts";
import type { CallsInFlight } from "./in-flight.ts";
import { HANDSHAKE_PARAMS, type Message, type Plain, type PlainForm, saysTasks } from "./message.ts";

type Params = Message["params"];

/** A request that has been read and admitted. */
interface MethodRequest {
  message: Message;
  /** Undefined for a request that is not plain. */
  plain: Plain | undefined;
  /** Whether the answer may be a stream, as demanded. */
  streams: boolean;
  request: Request;
  scope: RequestScope;
  /**
   * The SDK's response; `streamed`: a stream that begins at once. `signal`: in place of the request's. `onEnd` is called when the
   * response is complete.
   */
  sdk(streamed?: boolean, signal?: AbortSignal, onEnd?: () => void): Promise<Response>;
}

interface Method {
  /** What a plain request holds; without it no request for the method is plain. */
  form?: PlainForm;
  /** What a request demands beyond the default, which is a request that touches no job. */
  demand?(params: Params): Partial<Demand>;
  /** The response; undefined where the SDK has to answer. */
  answer?(request: MethodRequest): Response | Promise<Response | undefined> | undefined;
}

export type Methods = ReadonlyMap<string, Method>;

const reads = (): Partial<Demand> => ({ access: ["read"] });
const writes = (): Partial<Demand> => ({ access: ["write"] });

/** What the server offers. */
export interface Offered {
  identity: Identity;
  calls: ToolCalls;
  /** Undefined where no key seals task ids. */
  tasks: TaskService | undefined;
  /** Undefined where no object keeps a log of events. */
  events: Events | undefined;
  cards: Cards | undefined;
  files: LoadFiles;
  /** Notes for operators that a caller, by its label, has called a tool or method; undefined where there are no operators. */
  trail: ((caller: string, what: string, params: object) => Promise<void>) | undefined;
}

export function createMethods({ identity, calls, tasks, events }: Offered, inFlight: CallsInFlight): Methods {
  const { info, instructions } = identity;
  const { passed } = calls;
  const answering = answeringAs(info);
  const { respond, complete } = answering;

  /** A method whose result is always the same: by era, serialized once. */
  const constant = (legacy: object | undefined, modern: object | undefined): Method => {
    const results = {
      legacy: JSON.stringify(legacy),
      modern: modern && JSON.stringify(complete({ ...modern, ...CACHE })),
    };
    return {
      form: { params: [] },
      answer({ message: { id }, plain }) {
        const result = plain && results[plain.era];
        return result === undefined
          ? undefined
          : json(`{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":${result}}`);
      },
    };
  };

  return new Map<string, Method>([
    // A call of a method of servers behind the tools starts a job.
    ...Object.keys(passed?.methods ?? {}).map((method) => [method, { demand: writes }] as const),
    ...Object.entries(listsOf(calls.listing, passed)).map(
      ([method, result]) => [method, constant(result, result)] as const,
    ),
    ...Object.entries<Method>({
      initialize: {
        form: { params: HANDSHAKE_PARAMS },
        async answer({ message: { id, params }, plain, scope, sdk }) {
          const result = {
            protocolVersion: plain?.revision,
            capabilities: capabilities(false, events !== undefined, passed),
            serverInfo: info,
            instructions,
          };
          const response = plain?.revision ? json(JSON.stringify({ jsonrpc: "2.0", id, result })) : await sdk();
          const { elicitation } = Object(params.capabilities);
          const session = isRecord(elicitation) && showsForms({ elicitation }) && (await calls.sessionOf(scope.caller));
          if (session) response.headers.set("mcp-session-id", session);
          return response;
        },
      },
      ping: constant({}, undefined),
      "server/discover": constant(undefined, {
        supportedVersions: [REVISION],
        capabilities: capabilities(tasks !== undefined, events !== undefined, passed),
        instructions,
      }),
      // Reading a resource of a server behind the tools starts a job.
      "resources/read": {
        demand({ uri }) {
          const weight = passed?.weightOfRead(uri);
          return weight ? { access: ["write"], weight } : reads();
        },
      },
      "tools/call": toolCall(calls, answering, inFlight),
      "tasks/get": {
        form: { params: ["taskId"], namedBy: "taskId" },
        demand: reads,
        async answer({ message: { id, params }, plain, request: { signal }, scope }) {
          if (!tasks || plain?.era !== "modern" || !plain.declaresTasks) return undefined;
          const { showsForms } = plain;
          return respond(id, plain, () => getTask(tasks, params.taskId, { ...scope, signal, showsForms }));
        },
      },
      "tasks/update": { demand: writes },
      "tasks/cancel": { demand: writes },
      "subscriptions/listen": {
        demand({ notifications }) {
          const { taskIds, resourceSubscriptions: uris } = Object(notifications);
          // For each resource of a server behind the tools a job is started.
          const resources = passed?.capabilities.resources
            ? firstOf(uris, MAX_RESOURCES).reduce((sum: number, uri) => sum + passed.weightOfRead(uri), 0)
            : 0;
          return {
            access: resources > 0 ? ["read", "write"] : ["read"],
            weight: Math.max(1, firstOf(taskIds, MAX_TASKS).length) + resources,
            streams: true,
          };
        },
        answer: async ({ message, request, scope, sdk }) => {
          if (!tasks) return undefined;
          const { subscribe } = await loadLazy();
          return subscribe(tasks, info, scope, { request, message, watch: calls.watching(scope) }, sdk);
        },
      },
      ...(events && eventMethods(events, calls, answering)),
    }),
  ]);
}

function eventMethods(events: Events, calls: ToolCalls, { respond }: Answering): Record<string, Method> {
  const params = ["name", "arguments", "cursor", "maxAgeMs", "maxEvents"];
  const answered = (name: keyof Events["answers"], params: string[], weight = 1): Record<string, Method> => ({
    [name]: {
      form: { params },
      demand: () => ({ ...reads(), weight }),
      answer: ({ message: { id, params }, plain, request: { signal }, scope }) =>
        plain && respond(id, plain, () => calls.explained(events.answers[name](params, scope), signal)),
    },
  });
  return {
    ...answered("events/list", ["cursor"]),
    ...answered("events/poll", params),
    ...answered("events/subscribe", [...params, "delivery", "ttlMs"], 4),
    ...answered("events/unsubscribe", ["name", "arguments", "delivery"]),
    "events/stream": {
      form: { params },
      demand: () => ({ ...reads(), streams: true }),
      async answer({ message: { id, params }, plain, request, scope, sdk }) {
        const judged = plain ? await respond(id, plain, async () => events.check(params)) : await sdk();
        // An error is the whole answer; otherwise the stream follows.
        if (!judged || !/"result":/.test(await judged.clone().text())) return judged;
        return events.stream(id, params, scope, request.signal);
      },
    },
  };
}

/** `tools/call`. A tool that waits is answered with a stream, by the SDK if the tool may ask its caller something. */
function toolCall(calls: ToolCalls, { respond, answerTo }: Answering, inFlight: CallsInFlight): Method {
  return {
    form: { params: ["name", "arguments"], namedBy: "name" },
    demand(params) {
      const tool = calls.find(params.name);
      const weight = weightOfCall(params);
      return tool ? { weight, access: [accessOf(tool)], streams: calls.waits(tool, saysTasks(params)) } : { weight };
    },
    async answer({ message: { id, params }, plain, streams: isLong, request, scope, sdk }) {
      const { arguments: args = {} } = params;
      const tool = calls.find(params.name);
      if (!tool) return undefined;
      const { name } = tool;
      const { signal } = request;
      const isOurs = plain && isRecord(args) && !(isLong && plain.showsForms && tool.start);
      const { line } = scope;
      if (isOurs && !isLong) {
        const response = await respond(id, plain, () => calls.call(name, args, callOfPlain(plain, scope, signal)));
        if (response) return response;
      }
      // The response begins before the tool is done.
      line.hold();
      const open = inFlight.begin(scope, id);
      scope.cancelled = open.signal;
      const until = AbortSignal.any([signal, open.signal]);
      const release = () => {
        open.end();
        line.release();
      };
      if (isOurs && isLong) {
        const asks = await calls.asksInSession(tool, request.headers.get("mcp-session-id"), scope.caller);
        const run = async (send: (message: object) => void, aborted: AbortSignal) => {
          const notify = (method: string, params: object) => send({ jsonrpc: "2.0", method, params });
          const call = { ...callOfPlain(plain, scope, aborted), notify, ...reporting(plain.progressToken, notify) };
          const again = (more: Partial<CallRequest>) => calls.call(name, args, { ...call, ...more });
          const answer = await answerTo(id, plain, () =>
            asks ? asking(again, call, send) : calls.call(name, args, call),
          );
          if (answer && !open.signal.aborted) send(answer.message);
        };
        return eventStream((send, aborted) => run(send, aborted).finally(release), until, scope);
      }
      return sdk(isLong, until, release);
    },
  };
}

/** How long a call waits for an answer of a client of 2025, in milliseconds, with progress and without. */
const ASKING = { progress: 190_000, silent: 40_000 };

/** Calls a tool for a client of 2025, and puts the questions of its job on the call's stream. Answers come in other requests. */
async function asking(
  call: (more: Partial<CallRequest>) => Promise<CallResult>,
  { signal, scope, reportProgress }: CallRequest,
  send: (message: object) => void,
): Promise<CallResult> {
  const until = Math.min(Date.now() + (reportProgress ? ASKING.progress : ASKING.silent), scope.until);
  const asked = new Set<string>();
  let requestState: string | undefined;
  for (;;) {
    // When the time is up, the result has the question in words.
    const result = await call({ requestState, showsForms: Date.now() < until });
    if (!isInputRequired(result) || signal.aborted) return result;
    ({ requestState } = result);
    for (const [key, request] of Object.entries(result.inputRequests ?? {})) {
      const id = `${requestState} ${key}`;
      if (!asked.has(id)) send({ jsonrpc: "2.0", id, ...request });
      asked.add(id);
    }
  }
}

/** The answer in a client's response to a request of `asking`: the request's state, and the answer by its question's key. */
export function answerIn(parsed: unknown): { requestState: string; responses: Record<string, unknown> } | undefined {
  const { id, result } = Object(parsed);
  const [, requestState, key] = (typeof id === "string" && /^(\S+) (.+)$/s.exec(id)) || [];
  if (requestState === undefined || key === undefined || !isRecord(result)) return undefined;
  return { requestState, responses: { [key]: result } };
}

function callOfPlain(
  { era, declaresTasks, showsForms, showsCards, meta = {} }: Plain,
  scope: RequestScope,
  signal: AbortSignal,
): CallRequest {
  return {
    declaresTasks,
    showsForms,
    showsCards,
    scope,
    signal,
    inputResponses: {},
    cancelsByLeaving: era === "modern",
    ...saidInMeta(meta),
  };
}

type Answering = ReturnType<typeof answeringAs>;

/** The answers of a server that describes itself so. */
function answeringAs(info: object) {
  /** A result in the form of the 2026-07-28 revision. */
  const complete = (result: object): object => {
    const { _meta } = result as { _meta?: object };
    return { resultType: "complete", ...result, _meta: { ..._meta, [SERVER_INFO]: info } };
  };

  /** The JSON-RPC response to a call and its HTTP status; undefined where the SDK has to answer. */
  const answerTo = async (id: Message["id"], { era }: Plain, call: () => Promise<object>) => {
    try {
      const result = await call();
      // The SDK calls again, and checks that the client can answer the questions.
      if (isInputRequired(result)) return undefined;
      return { message: { jsonrpc: "2.0", id, result: era === "modern" ? complete(result) : result }, status: 200 };
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      const { code, message, data } = error;
      return {
        message: { jsonrpc: "2.0", id, error: { code, message, data } },
        // The only error for which the protocol has an HTTP status.
        status: code === ErrorCode.MissingRequiredClientCapability ? 400 : 200,
      };
    }
  };

  /** The same as a JSON response. */
  const respond = async (...given: Parameters<typeof answerTo>) => {
    const answer = await answerTo(...given);
    return answer && json(JSON.stringify(answer.message), answer.status);
  };

  return { complete, answerTo, respond };
}

function json(body: string, status = 200): Response {
  return new Response(body, { status, headers: { "content-type": "application/json" } });
}

/** The cost of one name or of a whole call, in requests to the Resonate server, where it is more than a look at a job. */
const OF_A_NAME: ReadonlyMap<unknown, number> = new Map([
  ["cancel_job", 4],
  ["forget_jobs", 2],
]);
const OF_A_CALL: ReadonlyMap<unknown, number> = new Map([
  ["list_jobs", 10],
  ["schedule_job", 6],
]);

/** The cost of a `tools/call`, by the jobs that it names; that of one where its arguments will be refused. */
function weightOfCall({ name, arguments: args }: Record<string, unknown>): number {
  const { job_names } = Object(args);
  const names = job_names === undefined ? 1 : (jobNames.safeParse(job_names).data?.length ?? 1);
  return OF_A_CALL.get(name) ?? (OF_A_NAME.get(name) ?? 1) * names;
}

/** The members of a list in a request, up to the most that it may have. */
const firstOf = (list: unknown, most: number): unknown[] => (Array.isArray(list) ? list.slice(0, most) : []);
