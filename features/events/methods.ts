/** The Events extension: the types of events that a deployment offers, and the extension's methods. */
import * as z from "zod";
import type { Caller } from "../../core/author/caller.ts";
import type { EventDefinition } from "../../core/author/event.ts";
import type { Job } from "../../core/author/job.ts";
import type { EdgeFeature } from "../../core/feature.ts";
import { JobView } from "../../core/jobs/status.ts";
import { ResonateUnavailable } from "../../core/resonate/connection/failures.ts";
import { pause } from "../../core/resonate/pacing/backoff.ts";
import { ErrorCode, ProtocolError, SUBSCRIPTION_ID } from "../../core/tools/mcp.ts";
import type { Method } from "../../core/tools/method.ts";
import type { RequestScope } from "../../core/tools/request-scope.ts";
import { eventStream } from "../../functions/http/event-stream.ts";
import { isSecret } from "../../functions/http/signed-post.ts";
import type { Callers, EventQuery } from "../../functions/objects/callers.ts";
import { JOB_ENDED, JOB_OUTPUT, JOB_PROGRESS, JOB_QUESTION } from "../schedules/occurrence.ts";
import { CODES } from "../web-hooks/codes.ts";
import type { Refused } from "../web-hooks/web-hooks.ts";

/** The key under which the extension is declared. */
export const EVENTS = "io.modelcontextprotocol/events";

/** How many events one answer holds, at most and by default. */
const MOST = { events: 100, byDefault: 50 };

/** When to poll again, in milliseconds: while jobs are under way, and otherwise. */
const NEXT_POLL = { busy: 5_000, idle: 30_000 };

/** How often a stream sends its cursor, also without events; in milliseconds. */
const HEARTBEAT = 20_000;

/** The keep-alive of a stream of events. The extension allows no comments there, and readers ignore an empty event. */
const NO_COMMENT = "\n";

/** How long starts of callers without identity are recorded after somebody has asked for events, in milliseconds. */
const INTEREST = 600_000;

/** The pause after a failure to read, in milliseconds. */
const AFTER_ERROR = 2_000;

/** How long before its deadline a stream ends by itself, in milliseconds. */
const BEFORE_END = 1_000;

/** The most names, kinds or labels in the filter of one subscription. */
const MOST_NARROWED = 100;

/** The filter of a subscription. */
const Narrowing = z.strictObject({
  job_names: z.array(z.string().max(600)).min(1).max(MOST_NARROWED).optional().describe("Of these jobs alone."),
  kinds: z.array(z.string().max(64)).min(1).max(MOST_NARROWED).optional().describe("Of jobs of these kinds alone."),
  labels: z
    .array(z.string().max(64))
    .min(1)
    .max(MOST_NARROWED)
    .optional()
    .describe("Of jobs with one of these labels alone."),
  schedule: z.string().max(600).optional().describe("Of the jobs that this schedule starts, by its job name."),
});

const ofAJob = {
  job_name: z.string(),
  kind: z.string(),
  labels: z.array(z.string()).optional().describe("Those that the caller gave it."),
  view_url: z.string().optional().describe("Its page."),
};

const Question = z.object({
  ...ofAJob,
  question: z.string().describe("Its key."),
  message: z.string().optional(),
  answered_by: z.enum(["user", "anyone"]).optional().describe("anyone: answer_question takes the answer."),
  answer_schema: z.record(z.string(), z.unknown()).optional().describe("JSON Schema of the answer."),
});

const Progress = z.object({
  ...ofAJob,
  message: z.string().optional(),
  done: z.number().optional(),
  total: z.number().optional(),
});

const Output = z.object({
  ...ofAJob,
  offset: z.int(),
  output: z.unknown().optional(),
  summary: z.object({ characters: z.int(), part: z.string() }).optional(),
});

const Ended = JobView.omit({ doing: true, newer: true, waiting_for: true }).extend(ofAJob);

interface EventType {
  name: string;
  description: string;
  delivery: readonly ("poll" | "push" | "webhook")[];
  inputSchema: object;
  payloadSchema: object;
}

const schemaOf = (schema: z.ZodType, io: "input" | "output"): object => {
  const { $schema: _, ...plain } = z.toJSONSchema(schema, { io });
  return plain;
};

/** The events that these jobs define, one of each name. */
const ownEvents = (jobs: readonly Job[]): EventDefinition[] => [
  ...new Map(jobs.flatMap(({ events = [] }) => events.map((event) => [event.name, event]))).values(),
];

/** `hooks`: whether they are delivered by web hook as well. */
function eventTypes(hooks: boolean, jobs: readonly Job[]): EventType[] {
  const delivery: EventType["delivery"] = hooks ? ["poll", "push", "webhook"] : ["poll", "push"];
  const inputSchema = schemaOf(Narrowing, "input");
  const type = (name: string, description: string, payload: z.ZodType): EventType => ({
    ...{ name, description, delivery, inputSchema, payloadSchema: schemaOf(payload, "output") },
  });
  return [
    type(JOB_ENDED, "A job that the caller started has ended: with its result, or why there is none.", Ended),
    type(JOB_QUESTION, "A job that the caller started waits for an answer.", Question),
    type(JOB_PROGRESS, "How far a job is that the caller started; at most one in 5 seconds a job.", Progress),
    type(JOB_OUTPUT, "A partial result of a job that the caller started.", Output),
    ...ownEvents(jobs).map(({ name, payload }) =>
      type(name, payload.description ?? "", z.object({ ...ofAJob, payload })),
    ),
  ];
}

const Subscription = z.object({
  name: z.string(),
  arguments: Narrowing.default({}),
  // This server's cursors have at most 24 characters.
  cursor: z.string().max(100).nullish(),
  maxAgeMs: z.int().min(0).optional(),
  maxEvents: z.int().min(1).optional(),
});

const Hook = z.object({
  delivery: z.object({ mode: z.string().optional(), url: z.string(), secret: z.string().optional() }),
  ttlMs: z.int().min(1).nullish(),
});

type Params = Record<string, unknown>;

/** The parameters of a request that reads events. */
const QUERY_PARAMS = ["name", "arguments", "cursor", "maxAgeMs", "maxEvents"];

/** A method that reads jobs, and costs `weight` requests. */
const readingMethod = (params: readonly string[], handle: NonNullable<Method["handle"]>, weight = 1): Method => ({
  form: { params },
  cost: () => ({ access: ["read"], weight }),
  handle,
});

interface EventsOptions {
  callers: Callers;
  codes: keyof typeof CODES;
  /** Whether web hooks are offered, as they are to callers with an identity. */
  hooks: boolean;
  jobs: readonly Job[];
}

export class Events {
  readonly #callers: Callers;
  readonly #codes: (typeof CODES)[keyof typeof CODES];
  readonly #types: readonly EventType[];
  readonly #kinds: ReadonlySet<string>;
  /** When somebody last asked this isolate for events, in milliseconds since the epoch. */
  #asked = 0;

  constructor(options: EventsOptions) {
    const { callers, codes, hooks, jobs } = options;
    this.#kinds = new Set(jobs.map(({ kind }) => kind));
    this.#types = eventTypes(hooks, jobs);
    this.#callers = callers;
    this.#codes = CODES[codes];
  }

  /** Whether somebody may want events of a job that starts now. */
  get isHeard(): boolean {
    return Date.now() - this.#asked < INTEREST;
  }

  /** @throws {ProtocolError} for a request that is not valid */
  readonly methods: Readonly<Record<string, Method>> = {
    "events/list": readingMethod(["cursor"], async () => ({ events: this.#types })),
    "events/poll": readingMethod(QUERY_PARAMS, (params, { scope }) => this.#poll(params, scope)),
    "events/subscribe": readingMethod(
      [...QUERY_PARAMS, "delivery", "ttlMs"],
      (params, { scope }) => this.#subscribe(params, scope.caller),
      4,
    ),
    "events/unsubscribe": readingMethod(["name", "arguments", "delivery"], (params, { scope }) =>
      this.#unsubscribe(params, scope.caller),
    ),
    "events/stream": {
      form: { params: QUERY_PARAMS },
      cost: () => ({ access: ["read"], streams: true }),
      // Here the SDK judges only the request: the stream itself does not pass through it.
      handle: async (params) => this.check(params),
      answer: async ({ message: { id, params }, plain, request, scope, respond, sdk }) => {
        const judged = plain ? await respond(async () => this.check(params)) : await sdk();
        // An error is the whole answer; otherwise the stream follows.
        if (!judged || !/"result":/.test(await judged.clone().text())) return judged;
        return this.stream(id, params, scope, request.signal);
      },
    },
  };

  async #poll(params: Params, scope: RequestScope): Promise<Params> {
    this.#asked = Date.now();
    const page = await this.#read(this.#queryOf(params), scope);
    const { truncated, hasMore, isBusy } = page;
    const events = page.events.map(({ cursor: _, ...event }) => event);
    const nextPollMs = isBusy ? NEXT_POLL.busy : NEXT_POLL.idle;
    return { events, cursor: page.cursor, truncated, hasMore, nextPollMs };
  }

  /** An empty result for a request that a stream may answer. @throws {ProtocolError} for any other */
  check(params: Params): Params {
    this.#queryOf(params);
    return {};
  }

  /** A stream of events until its deadline, or until the caller leaves. */
  stream(id: string | number, params: Params, scope: RequestScope, disconnected: AbortSignal): Response {
    this.#asked = Date.now();
    let query = this.#queryOf(params);
    const _meta = { [SUBSCRIPTION_ID]: id };
    const end = (send: (message: object) => void) => {
      if (scope.until === 0) {
        const error = { code: this.#codes.Forbidden, message: "Forbidden: this caller has been blocked" };
        send({ jsonrpc: "2.0", method: "notifications/events/terminated", params: { error, _meta } });
      }
      send({ jsonrpc: "2.0", id, result: { resultType: "complete", _meta } });
    };
    return eventStream(
      async (send, signal) => {
        const notify = (name: string, told: object) =>
          send({ jsonrpc: "2.0", method: `notifications/events/${name}`, params: { ...told, _meta } });
        const read = async (wait: number) => {
          const page = await this.#read({ ...query, wait }, scope);
          query = { ...query, cursor: page.cursor, maxAgeMs: undefined };
          return page;
        };
        let isActive = false;
        let wait = 0;
        let beat = Date.now();
        for (let left = 1; left > 0 && !signal.aborted; left = scope.until - BEFORE_END - Date.now()) {
          try {
            const page = await read(Math.min(wait, left));
            if (signal.aborted) return;
            const isBegun = isActive && !page.truncated;
            if (!isBegun) notify("active", { cursor: page.from, truncated: page.truncated });
            isActive = true;
            for (const event of page.events) notify("event", event);
            if (isBegun && (page.events.length === 0 || Date.now() - beat >= HEARTBEAT)) {
              notify("heartbeat", { cursor: page.cursor });
              beat = Date.now();
            }
            wait = page.hasMore ? 0 : HEARTBEAT;
            const limited = page.hasMore ? await scope.charge() : undefined;
            if (limited?.seconds) await pause(limited.seconds * 1_000, signal);
          } catch (error) {
            if (!(error instanceof ResonateUnavailable)) throw error;
            const { message } = error;
            notify("error", { error: { code: ErrorCode.InternalError, message: `the Resonate server: ${message}` } });
            await pause(AFTER_ERROR, signal);
          }
        }
        end(send);
      },
      disconnected,
      scope,
      end,
      NO_COMMENT,
    );
  }

  /** Has events delivered by web hook, or renews that. */
  async #subscribe(params: Params, caller: Caller): Promise<Params> {
    const { limit: _, ...query } = this.#queryOf(params);
    const { delivery, ttlMs } = this.#hookOf(params, caller);
    const { mode = "webhook", url, secret = "" } = delivery;
    if (mode !== "webhook") throw this.#error("Unsupported", { feature: "deliveryMode", value: mode });
    if (!isSecret(secret))
      throw invalidParams(
        "delivery.secret: whsec_ and base64 of 24 to 64 bytes are required, as Standard Webhooks has it",
      );
    // The caller's object checks that the address is public.
    const href = URL.parse(url)?.href ?? url;
    return this.#granted(await this.#callers.subscribe(caller, { ...query, url: href, secret, ttlMs }));
  }

  /** Ends a subscription by web hook. */
  async #unsubscribe(params: Params, caller: Caller): Promise<Params> {
    const { name, narrowed } = this.#queryOf(params);
    const { url } = this.#hookOf(params, caller).delivery;
    if (!URL.canParse(url)) throw this.#error("NotFound", { kind: "subscription" });
    return this.#granted(await this.#callers.unsubscribe(caller, { name, narrowed, url: new URL(url).href }));
  }

  /** Reads events, and charges a look at a job for each. */
  async #read(query: EventQuery, { caller, store }: RequestScope) {
    const page = await this.#callers.events(caller, query);
    store.charge(page.events.length);
    return page;
  }

  #hookOf(params: Params, { key }: Caller): z.infer<typeof Hook> {
    if (key === "") throw this.#error("Forbidden", { reason: "web hooks are for callers who sign in" });
    const { data, error } = Hook.safeParse(params);
    if (!data) throw invalidParams(wordsOf(error));
    return data;
  }

  #granted(answer: object | Refused): Params {
    if (!("refused" in answer)) return { ...answer };
    if (answer.refused === "InvalidUrl") throw invalidParams(`delivery.url: ${answer.data.problem}`);
    throw this.#error(answer.refused, answer.data);
  }

  #error(name: keyof (typeof CODES)["sep"], data: Params): ProtocolError {
    return new ProtocolError(this.#codes[name], name, data);
  }

  #queryOf(params: Params): EventQuery {
    const { name } = params;
    if (typeof name === "string" && !this.#types.some((type) => type.name === name)) {
      const known = this.#types.map((type) => type.name).join(", ");
      const message = `NotFound: no event type has this name. There are: ${known}`;
      throw new ProtocolError(this.#codes.NotFound, message, { kind: "event" });
    }
    const { data, error } = Subscription.safeParse(params);
    if (!data) throw invalidParams(wordsOf(error));
    const { arguments: narrowing, cursor = null, maxAgeMs, maxEvents = MOST.byDefault } = data;
    const { job_names: jobNames, ...rest } = narrowing;
    const unknown = rest.kinds?.filter((kind) => !this.#kinds.has(kind)) ?? [];
    if (unknown.length > 0) {
      const known = [...this.#kinds].join(", ");
      throw invalidParams(`arguments.kinds: no job is of the kind ${unknown.join(", ")}. There are: ${known}`);
    }
    const narrowed = { jobNames, ...rest };
    return { name: data.name, narrowed, cursor, maxAgeMs, limit: Math.min(maxEvents, MOST.events) };
  }
}

const wordsOf = ({ issues }: z.ZodError): string =>
  issues.map(({ path, message }) => `${path.join(".")}: ${message}`).join("; ");

const invalidParams = (reason: string) =>
  new ProtocolError(ErrorCode.InvalidParams, `Invalid params: ${reason}`.slice(0, 500));

/** The Events extension as a feature. Clients of the sketch that preceded it look for `events` at the top. */
export const eventFeature = ({ methods }: Events): EdgeFeature => ({
  name: "events",
  methods,
  capabilities: () => ({ events: {}, extensions: { [EVENTS]: {} } }),
});
