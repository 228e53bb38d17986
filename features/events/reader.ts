/** The Events extension: the types of events that a deployment offers, and what its methods answer. */
import * as z from "zod";
import type { EventDefinition, Job } from "../../core/author/index.ts";
import { type EventQuery, JOB_ENDED, JOB_OUTPUT, JOB_PROGRESS, JOB_QUESTION, JobView } from "../../core/jobs/index.ts";
import { pause, type Remote, ResonateUnavailable } from "../../core/resonate/index.ts";
import {
  ErrorCode,
  type EventErrorCodes,
  invalidParams,
  ProtocolError,
  type RequestScope,
  SUBSCRIPTION_ID,
} from "../../core/tools/index.ts";
import { eventStream, type Send } from "../../functions/http/event-stream.ts";
import type { EventMethods } from "./object.ts";

/** How many events one answer holds, at most and by default. */
const MAX_EVENTS = 100;
const DEFAULT_EVENTS = 50;

/** When to poll again, in milliseconds: while jobs are under way, and otherwise. */
const BUSY_POLL_MS = 5_000;
const IDLE_POLL_MS = 30_000;

/** How often a stream sends its cursor, also without events; in milliseconds. */
const HEARTBEAT_MS = 20_000;

/** The keep-alive of a stream of events. The extension allows no comments there, and readers ignore an empty event. */
const NO_COMMENT = "\n";

/** The pause after a failure to read, in milliseconds. */
const ERROR_PAUSE_MS = 2_000;

/** How long before its deadline a stream ends by itself, in milliseconds. */
const END_MARGIN_MS = 1_000;

/** The most names, kinds or labels in the filter of one subscription. */
const MAX_FILTER_VALUES = 100;

/** The filter of a subscription. */
const Filter = z.strictObject({
  job_names: z.array(z.string().max(600)).min(1).max(MAX_FILTER_VALUES).optional().describe("Of these jobs alone."),
  kinds: z.array(z.string().max(64)).min(1).max(MAX_FILTER_VALUES).optional().describe("Of jobs of these kinds alone."),
  labels: z
    .array(z.string().max(64).normalize("NFC"))
    .min(1)
    .max(MAX_FILTER_VALUES)
    .optional()
    .describe("Of jobs with one of these labels alone."),
  schedule: z.string().max(600).optional().describe("Of the jobs that this schedule starts, by its job name."),
});

const jobFields = {
  job_name: z.string(),
  kind: z.string(),
  labels: z.array(z.string()).optional().describe("Those that the caller gave it."),
  view_url: z.string().optional().describe("Its page."),
};

const Question = z.object({
  ...jobFields,
  question: z.string().describe("Its key."),
  message: z.string().optional(),
  answered_by: z.enum(["user", "anyone"]).optional().describe("anyone: answer_question takes the answer."),
  answer_schema: z.record(z.string(), z.unknown()).optional().describe("JSON Schema of the answer."),
});

const Progress = z.object({
  ...jobFields,
  message: z.string().optional(),
  done: z.number().optional(),
  total: z.number().optional(),
});

const Output = z.object({
  ...jobFields,
  offset: z.int(),
  output: z.unknown().optional(),
  summary: z.object({ characters: z.int(), part: z.string() }).optional(),
});

const Ended = JobView.omit({ doing: true, newer: true, waiting_for: true }).extend(jobFields);

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
  const inputSchema = schemaOf(Filter, "input");
  const type = (name: string, description: string, payload: z.ZodType): EventType => ({
    name,
    description,
    delivery,
    inputSchema,
    payloadSchema: schemaOf(payload, "output"),
  });
  return [
    type(JOB_ENDED, "A job that the caller started has ended: with its result, or why there is none.", Ended),
    type(JOB_QUESTION, "A job that the caller started waits for an answer.", Question),
    type(JOB_PROGRESS, "How far a job is that the caller started; at most one in 5 seconds a job.", Progress),
    type(JOB_OUTPUT, "A partial result of a job that the caller started.", Output),
    ...ownEvents(jobs).map(({ name, payload }) =>
      type(name, payload.description ?? "", z.object({ ...jobFields, payload })),
    ),
  ];
}

const Subscription = z.object({
  name: z.string(),
  arguments: Filter.default({}),
  // This server's cursors have at most 24 characters.
  cursor: z.string().max(100).nullish(),
  maxAgeMs: z.int().min(0).optional(),
  maxEvents: z.int().min(1).optional(),
});

type Params = Record<string, unknown>;

export interface EventsOptions {
  /** The methods of a caller's object, by the caller's key. */
  of(key: string): Remote<EventMethods>;
  codes: EventErrorCodes;
  /** Whether web hooks are offered, as they are to callers with an identity. */
  hooks: boolean;
  jobs: readonly Job[];
}

export class EventReader {
  readonly #options: EventsOptions;
  readonly types: readonly EventType[];
  readonly #kinds: ReadonlySet<string>;

  constructor(options: EventsOptions) {
    const { hooks, jobs } = options;
    this.#options = options;
    this.#kinds = new Set(jobs.map(({ kind }) => kind));
    this.types = eventTypes(hooks, jobs);
  }

  async poll(params: Params, scope: RequestScope): Promise<Params> {
    const page = await this.#read(this.queryOf(params), scope);
    const { truncated, hasMore, isBusy } = page;
    const events = page.events.map(({ cursor: _, ...event }) => event);
    const nextPollMs = isBusy ? BUSY_POLL_MS : IDLE_POLL_MS;
    return { events, cursor: page.cursor, truncated, hasMore, nextPollMs };
  }

  /** A stream of events until its deadline, or until the caller leaves. */
  stream(id: string | number, params: Params, scope: RequestScope, disconnected: AbortSignal): Response {
    let query = this.queryOf(params);
    const _meta = { [SUBSCRIPTION_ID]: id };
    const end = (send: Send) => {
      if (scope.until === 0) {
        const error = { code: this.#options.codes.Forbidden, message: "Forbidden: this caller has been blocked" };
        send({ jsonrpc: "2.0", method: "notifications/events/terminated", params: { error, _meta } });
      }
      send({ jsonrpc: "2.0", id, result: { resultType: "complete", _meta } });
    };
    return eventStream(
      async ({ send, signal, ready }) => {
        const notify = (name: string, content: object) =>
          send({ jsonrpc: "2.0", method: `notifications/events/${name}`, params: { ...content, _meta } });
        const read = async (wait: number) => {
          const page = await this.#read({ ...query, wait }, scope);
          query = { ...query, cursor: page.cursor, maxAgeMs: undefined };
          return page;
        };
        let isActive = false;
        let wait = 0;
        let beat = Date.now();
        for (let left = 1; left > 0 && !signal.aborted; left = scope.until - END_MARGIN_MS - Date.now()) {
          try {
            const page = await read(Math.min(wait, left));
            if (signal.aborted) return;
            const isBegun = isActive && !page.truncated;
            if (!isBegun) notify("active", { cursor: page.from, truncated: page.truncated });
            isActive = true;
            for (const event of page.events) notify("event", event);
            await ready();
            if (isBegun && (page.events.length === 0 || Date.now() - beat >= HEARTBEAT_MS)) {
              notify("heartbeat", { cursor: page.cursor });
              beat = Date.now();
            }
            wait = page.hasMore ? 0 : HEARTBEAT_MS;
            const limited = page.hasMore ? await scope.charge() : undefined;
            if (limited?.seconds) await pause(limited.seconds * 1_000, signal);
          } catch (error) {
            if (!(error instanceof ResonateUnavailable)) throw error;
            const { message } = error;
            notify("error", { error: { code: ErrorCode.InternalError, message: `the Resonate server: ${message}` } });
            await pause(ERROR_PAUSE_MS, signal);
          }
        }
        end(send);
      },
      { disconnected, terms: scope, onCut: end, alive: NO_COMMENT },
    );
  }

  /** Reads events, and charges a look at a job for each. */
  async #read(query: EventQuery & { wait?: number }, { caller, store }: RequestScope) {
    const page = await this.#options.of(caller.key).readEvents(caller, query);
    store.charge(page.events.length);
    return page;
  }

  /** What a request wants. @throws {ProtocolError} for one that is not valid */
  queryOf(params: Params): EventQuery {
    const { name } = params;
    if (typeof name === "string" && !this.types.some((type) => type.name === name)) {
      const known = this.types.map((type) => type.name).join(", ");
      const message = `NotFound: no event type has this name. There are: ${known}`;
      throw new ProtocolError(this.#options.codes.NotFound, message, { kind: "event" });
    }
    const { data, error } = Subscription.safeParse(params);
    if (!data) throw invalidParams(error);
    const { arguments: requested, cursor = null, maxAgeMs, maxEvents = DEFAULT_EVENTS } = data;
    const { job_names: jobNames, ...rest } = requested;
    const unknown = rest.kinds?.filter((kind) => !this.#kinds.has(kind)) ?? [];
    if (unknown.length > 0) {
      const known = [...this.#kinds].join(", ");
      throw invalidParams(`arguments.kinds: no job is of the kind ${unknown.join(", ")}. There are: ${known}`);
    }
    const filter = { jobNames, ...rest };
    return { name: data.name, filter, cursor, maxAgeMs, limit: Math.min(maxEvents, MAX_EVENTS) };
  }
}
