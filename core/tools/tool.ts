/** Tools, as authors define them, and as the edge lists and calls them. */
import * as z from "zod";
import type { Answer } from "../author/context.ts";
import { type Job, type JsonSchema, RAW_SCHEMAS, type Schema } from "../author/job.ts";
import type { DurablePromise } from "../jobs/durable-promise.ts";
import type { RemoteStore } from "../jobs/remote-store.ts";
import type { JobStatus } from "../jobs/status.ts";
import { lenientForms, plain } from "./advertised.ts";
import type { Input } from "./arguments.ts";
import type { InputRequiredResult, ToolAnnotations } from "./mcp.ts";
import { ANSWER_SUBJECT, type AnswerSubject, structured, type ToolAnswer } from "./present.ts";
import { MAX_RESULT_SIZE, MIN_ANSWER } from "./results.ts";

/**
 * A job as a tool sees it.
 *
 * @example
 * const words = ({ jobName, status }: Started) => `${jobName} is ${status}`;
 */
export interface Started<Args = unknown, Result = unknown> {
  jobName: string;
  status: JobStatus;
  /** The arguments of its first start. */
  args: Args;
  /** 1 at first, and one more each time the job is started again. */
  generation: number;
  /** Present when the job is complete. */
  result?: Result;
  /** Milliseconds since the epoch. */
  startedAt: number;
}

/**
 * The caller's jobs, for a tool.
 *
 * @example
 * const isRunning = async (jobs: Jobs, day: string) => (await jobs.find(report, { day }))?.status === "running";
 */
export interface Jobs {
  /** Starts a job, or finds it if it exists. @throws {Error} if it cannot be started */
  start<Args, Result>(job: Job<Args, Result>, args: Args): Promise<Started<Args, Result>>;
  /** The newest generation of the job with these arguments; undefined if it was never started. */
  find<Args, Result>(job: Job<Args, Result>, args: Args): Promise<Started<Args, Result> | undefined>;
  /** Answers a job's question by the name that `ctx.ask` gave it; `closed`: it was answered, or the job has ended. */
  answer(jobName: string, question: string, answer: Answer): Promise<"answered" | "closed" | "notAsked">;
}

/**
 * The context of one call of a tool.
 *
 * @example
 * const inAnHour = ({ now }: ToolContext) => new Date(now + HOUR).toISOString();
 */
export interface ToolContext {
  jobs: Jobs;
  /** Milliseconds since the epoch. */
  now: number;
  /** Aborted when the caller goes away. */
  signal: AbortSignal;
  /** The time by which the caller must have an answer, in milliseconds since the epoch. */
  until: number;
  /** Whether the client understands tasks, and so follows a job as a task. */
  tasks: boolean;
  /** Whether the client can ask its user a running job's questions, which come with a task or with the answer to a call. */
  asks: boolean;
  /** Whether arguments may express the user's consent; see {@link ToolOptions.consent}. */
  mayConfirm: boolean;
  /** The client's answers to an input-required result, by key. */
  inputResponses: Record<string, unknown>;
  /** `idempotencyKey` in the request's `_meta`: repeated calls have the same key. */
  idempotencyKey?: string;
  /** Reports progress, if the caller asked for it. A repeated value is sent slightly greater, as the protocol demands. */
  reportProgress?: (progress: number, total: number | undefined, message?: string) => void;
}

/**
 * A tool error, whose message tells a model what went wrong and what to do.
 *
 * @example
 * const check = (day: string) => {
 *   if (day > "2026-12-31") throw new ToolError("day: accepted are days up to 2026-12-31.");
 * };
 * check("2026-11-21");
 */
export class ToolError extends Error {
  override name = "ToolError";
}

/**
 * The options that all tools have.
 *
 * @example
 * const options: ToolOptions<{ day: string }> = {
 *   name: "daily_report",
 *   title: "Report",
 *   description: "Writes the report of a day.",
 *   input: z.object({ day: z.iso.date().describe("The day, such as 2026-11-21.") }),
 *   annotations: { readOnlyHint: true, idempotentHint: true },
 * };
 */
export interface ToolOptions<Args> {
  /** Unique in a deployment: letters, digits, `_`, `-` and `.`. */
  name: string;
  title: string;
  /** For the model that chooses among tools. */
  description: string;
  /** An object. Each field's description says what is accepted: models read it in the list and in errors. */
  input: Schema<Args>;
  /**
   * Hints. The protocol's defaults: the tool writes, may destroy, and reaches external systems. A tool whose work is a job
   * is idempotent by default. Set `readOnlyHint: true` for a tool that changes nothing: hosts make calls of it without
   * asking, and several at once.
   */
  annotations?: ToolAnnotations;
  /** The arguments by which a model says that the user agreed to something. A deployment may remove them. */
  consent?: readonly string[];
  /**
   * The most characters of an answer: of the whole message, which holds structured content twice. Hosts that cut long
   * answers are told this limit. A larger result of a job comes as a summary that says how to read the rest; a larger answer
   * of a tool without a job is an error. At least 5,000; default 50,000.
   */
  maxAnswer?: number;
  _meta?: Record<string, unknown>;
}

/** The context of the edge's own tools. */
export interface CallContext extends ToolContext {
  store: RemoteStore;
  /** Whether the client declares that it shows cards, and so hides content for cards from its model. */
  showsCards: boolean;
  /** How long a call without progress waits for its job, in milliseconds. */
  maxWaitMs: number;
  /** The address of a job's page; absent in a deployment without such pages. */
  pageOf?(job: string): Promise<string | undefined>;
  /** The request's `_meta`, without the fields that concern only the client and this server. */
  meta?: Record<string, unknown>;
  /** Identifies the session of a client of 2025. */
  session?: string | undefined;
  /** The lowest level of the log messages that the request asks for. */
  logLevel?: unknown;
  /** Sends the client a notification about its request; absent if the client cannot receive any. */
  notify?(method: string, params: object): void;
  /** Whether the client has cancelled the call; false if it has merely lost its connection, or time is up. */
  isCancelled?(): boolean;
  /** Sets the advice to the caller if the call fails from now on: for calls that a repeat would make a second time. */
  advise?(advice: string): void;
}

/**
 * When the deployment itself calls a tool whose work is a job: by one of `cron`, `every` and `at`.
 *
 * @example
 * const nightly: ToolSchedule = { cron: "0 3 * * *", timezone: "Europe/Zurich", arguments: { day: "yesterday" } };
 */
export interface ToolSchedule {
  /** Five fields: minute, hour, day of the month, month, day of the week. */
  cron?: string;
  /** The zone of `cron`, or of an `at` without an offset, by its IANA name. Default for cron: UTC. */
  timezone?: string;
  /** In milliseconds, at least a minute; the firings are its multiples since the epoch. */
  every?: number;
  /** Once, ISO 8601 with an offset, or a local time of `timezone`. */
  at?: string;
  /** The tool's arguments. Default: none. */
  arguments?: Record<string, unknown>;
  /** Which missed firings are made up for: none (`skip`, the default), or the newest one (`last`). */
  missed?: "skip" | "last";
  /** While the last firing's job runs, the next firing is left out (`skip`, the default), waits, or starts beside it. */
  overlap?: "skip" | "queue" | "allow";
}

/**
 * A tool as the server lists and calls it.
 *
 * @example
 * const tools: readonly Tool[] = [waitForSite];
 */
export interface Tool {
  readonly name: string;
  readonly input: Input;
  /** Whether a call may take long: its answer is then streamed from the start, which keeps the connection alive. */
  readonly waits: boolean;
  /** Its entry in `tools/list`. */
  readonly listing: Record<string, unknown>;
  /** The arguments by which a model says that the user agreed to something. */
  readonly consent?: readonly string[];
  /** The most characters of an answer. Default: 50,000. */
  readonly maxAnswer?: number;
  /** The kind of job that it starts. */
  readonly job?: Job;
  readonly schedule?: ToolSchedule;
  /** Whether a call returns the job's name at once. */
  readonly returnsAtOnce?: boolean;
  /** @throws {ToolError} */
  call(args: unknown, context: CallContext): Promise<ToolAnswer | InputRequiredResult>;
  /**
   * Starts the job; present if the tool's work is one job, which clients that understand tasks follow as a task.
   *
   * @throws {ToolError}
   */
  start?(args: unknown, context: CallContext): Promise<DurablePromise | InputRequiredResult>;
  /** The server that its calls go to; the tools of one server share it. */
  readonly upstream?: UpstreamServer;
  /** Changes in its server's list that wait for the operator's consent; the tools of one server share them. */
  readonly unapprovedChanges?: UnapprovedChanges;
  /** The changes of its server's list that were accepted; the tools of one server share them. */
  readonly acceptances?: readonly Acceptance[];
  /** Answers a call whose job was started before; present if calls wait for their jobs. */
  resume?(promise: DurablePromise, context: CallContext): Promise<ToolAnswer>;
  /** Finds the newest generation of a call's job without starting it, if the tool can. @throws {ToolError} */
  find?(args: unknown, context: ToolContext): Promise<Started | undefined>;
  /** The arguments of a call's job, if the tool's work is one job. @throws {ToolError} */
  argsOf?(args: unknown, context: ToolContext): Promise<unknown>;
  /** Whether the tool serves only clients that understand tasks. */
  readonly tasksOnly?: boolean;
}

/** Changes in a wrapped server's list of tools that its operator has not agreed to, a line each. */
export interface UnapprovedChanges {
  readonly server: string;
  readonly lines: readonly string[];
}

/** A changed list of a wrapped server's tools that somebody has accepted. */
export interface Acceptance {
  readonly server: string;
  /** ISO 8601. */
  readonly at: string;
  /** The user of the machine on which it was accepted. */
  readonly by: string;
  /** The accepted changes, a line each. */
  readonly changes: readonly string[];
}

/** The server that tools call, to which the edge proxies requests for prompts, resources and the like. */
export interface UpstreamServer {
  /** Combines what all upstream servers of the edge offer besides tools. */
  combine(servers: readonly UpstreamServer[]): ProxiedFeatures;
}

/** What an edge offers besides tools, and proxies to its upstream servers. */
export interface ProxiedFeatures {
  capabilities: { resources?: object; [capability: string]: object | undefined };
  prompts: readonly object[];
  resources: readonly object[];
  resourceTemplates: readonly object[];
  /** Answers to requests for other methods, by method; each rejects with {@link ProtocolError}. */
  methods: Readonly<Record<string, (params: Record<string, unknown>, context: CallContext) => Promise<object>>>;
  /** The cost of reading a resource of the servers; 0 if it is not theirs. */
  weightOfRead(uri: unknown): number;
  /** Reports resources that have changed, until the context's `signal` is aborted. */
  watch(uris: readonly string[], context: CallContext, onUpdated: (uri: string) => void): Promise<void>;
}

/**
 * A tool without a job of its own: it computes its answer, or looks at jobs.
 *
 * @example
 * export const now = defineTool({
 *   name: "now", title: "The time", description: "Tells the time.", input: z.object({}),
 *   output: z.object({ time: z.string() }), run: async (_args, { now }) => ({ time: new Date(now).toISOString() }),
 * });
 */
export function defineTool<Args, Output extends object>(
  tool: ToolOptions<Args> & {
    output: Schema<Output>;
    run(args: Args, context: ToolContext): Promise<Output>;
  },
): Tool {
  return builtInTool(tool);
}

/** {@link defineTool} for the edge's own tools. */
export function builtInTool<Args, Output extends object>(
  tool: ToolOptions<Args> & {
    output: Schema<Output>;
    waits?: boolean;
    run(args: Args, context: CallContext): Promise<Output & { [ANSWER_SUBJECT]?: AnswerSubject }>;
  },
): Tool {
  return {
    ...describeTool(tool, tool.output),
    waits: tool.waits === true,
    async call(args, context) {
      const { [ANSWER_SUBJECT]: subject, ...output } = await tool.run(args as Args, context);
      return structured(output, subject);
    },
  };
}

/** The parts of a tool that follow from its options, computed once. */
export function describeTool<Args>(
  tool: ToolOptions<Args>,
  output: Schema<unknown>,
): Pick<Tool, "name" | "input" | "listing" | "consent" | "maxAnswer"> {
  const { name, title, description, annotations = {}, consent, maxAnswer } = tool;
  if (!/^[A-Za-z0-9_.-]{1,128}$/.test(name)) {
    throw new Error(`A tool's name is up to 128 letters, digits, "_", "-" and ".", not ${JSON.stringify(name)}.`);
  }
  if (maxAnswer !== undefined && !(maxAnswer >= MIN_ANSWER)) {
    throw new Error(`${name}: its maxAnswer must be ${MIN_ANSWER} characters or more, not ${maxAnswer}.`);
  }
  const _meta = maxAnswer === undefined ? tool._meta : { [MAX_RESULT_SIZE]: maxAnswer, ...tool._meta };
  const json = jsonOf(name, "input", tool.input);
  const raw = RAW_SCHEMAS.get(tool.input);
  const isOpen = raw ? raw.additionalProperties !== false : json.additionalProperties !== undefined;
  const input = { schema: tool.input as z.ZodType<unknown>, json, isOpen };
  const listing = {
    name,
    title,
    description,
    // Plain JSON Schema is advertised as its author wrote it.
    inputSchema: raw ? input.json : lenientForms(input.json),
    outputSchema: jsonOf(name, "output", output),
    annotations: { title, ...hintsOf(annotations) },
    ...(_meta && { _meta }),
  };
  return { name, input, listing, ...(consent && { consent }), ...(maxAnswer !== undefined && { maxAnswer }) };
}

/** All hints, with the protocol's defaults spelled out: directories do not list a tool without them. */
function hintsOf({ readOnlyHint = false, ...hints }: ToolAnnotations): ToolAnnotations {
  return { readOnlyHint, destructiveHint: !readOnlyHint, idempotentHint: readOnlyHint, openWorldHint: true, ...hints };
}

/** The text of a refusal: the common beginning, then what is wrong with each argument, or a reason. */
export function refusal(tool: string, problems: readonly string[]): string {
  const [first = ""] = problems;
  if (first.startsWith(REFUSAL_PREFIX)) return problems.join("\n");
  if (!/^\w+: /.test(first)) return `${REFUSAL_PREFIX} ${problems.join("\n")}`;
  return [`${REFUSAL_PREFIX} ${tool} does not accept these arguments.`, ...problems].join("\n");
}

const REFUSAL_PREFIX = "Nothing was done:";

function jsonOf(tool: string, io: "input" | "output", schema: Schema<unknown>): JsonSchema {
  const json = schema?._zod ? (RAW_SCHEMAS.get(schema) ?? fromZod(tool, io, schema)) : {};
  if (json.type !== "object")
    throw new Error(
      `${tool}: its ${io} schema must be that of an object: z.object({ … }) of zod 4, or jsonSchema({ … }).`,
    );
  return plain(json);
}

function fromZod(tool: string, io: "input" | "output", schema: z.ZodType): JsonSchema {
  try {
    return z.toJSONSchema(schema, { io: "input" }) as JsonSchema;
  } catch (error) {
    throw new Error(`${tool}: its ${io} cannot be expressed in JSON Schema: ${(error as Error).message}`, {
      cause: error,
    });
  }
}
