/** What a tool is: to its author, and to the edge that lists and calls it. */
import * as z from "zod";
import type { Answer } from "../definitions/context.ts";
import { type Job, type JsonSchema, RAW, type Schema } from "../definitions/job.ts";
import type { DurablePromise, RemoteStore } from "../jobs/remote-store.ts";
import type { JobStatus } from "../jobs/status.ts";
import { lenientForms, plain } from "../tools/advertised.ts";
import type { Input } from "../tools/arguments.ts";
import type { CallToolResult, InputRequiredResult, ToolAnnotations } from "../tools/mcp.ts";
import { structured } from "../tools/present.ts";
import { MAX_RESULT_SIZE, MIN_ANSWER } from "../tools/results.ts";

/**
 * A job as a tool sees it.
 *
 * @example
 * const words = ({ job_name, status }: Started) => `${job_name} is ${status}`;
 */
export interface Started<Args = unknown, Result = unknown> {
  job_name: string;
  status: JobStatus;
  /** The arguments that it was started with, by whoever was first. */
  args: Args;
  /** 1, and one more each time that it was started again. */
  generation: number;
  /** When it is complete. */
  result?: Result;
  /** Milliseconds since the epoch. */
  startedAt: number;
}

/**
 * The jobs of the caller, to a tool.
 *
 * @example
 * const isRunning = async (jobs: Jobs, day: string) => (await jobs.find(report, { day }))?.status === "running";
 */
export interface Jobs {
  /** Starts a job, or finds it. */
  start<Args, Result>(job: Job<Args, Result>, args: Args): Promise<Started<Args, Result>>;
  /** The newest job with the name that `args` lead to. */
  find<Args, Result>(job: Job<Args, Result>, args: Args): Promise<Started<Args, Result> | undefined>;
  /** Answers a question that a job asks, by the name that `ctx.ask` gave it; `closed`: it is answered already. */
  answer(jobName: string, question: string, answer: Answer): Promise<"answered" | "closed" | "not_asked">;
}

/**
 * What a tool has to work with, for one call.
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
  /** When the caller has to be answered at the latest, in milliseconds since the epoch. */
  until: number;
  /** Whether the client understands tasks: it is told of a job by its task. */
  tasks: boolean;
  /** Whether it can put a running job's questions to its user, too. */
  asks: boolean;
  /** Whether arguments may say that the user agreed to something; see {@link ToolOptions.consent}. */
  mayConfirm: boolean;
  /** What the client answered to an input-required result, by key. */
  inputResponses: Record<string, unknown>;
  /** What tells this call from others and repeats of it have too: `idempotencyKey` in the request's `_meta`. */
  idempotencyKey?: string;
  /** Tells the caller how far the call is, when it asked to be told; `progress` must grow from one to the next. */
  reportProgress?: (progress: number, total: number, message: string) => void;
}

/**
 * A tool error: what went wrong, worded so that a model can act on it.
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
 * What every tool says of itself.
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
  /** Written for the model that chooses among tools. */
  description: string;
  /** An object. Every field's description says what is accepted: the model reads it in the list, and in errors. */
  input: Schema<Args>;
  /** What is left out is said as the protocol has it: the tool writes, may destroy, and reaches out into the world. */
  annotations?: ToolAnnotations;
  /** The arguments by which a model says that the user agreed to something. A deployment may take them away. */
  consent?: readonly string[];
  /**
   * The most characters of an answer: of the whole message, in which structured content is there twice. Hosts that cut what
   * is longer than they expect are told. A result that is larger comes as a summary with a way to the rest; of a tool
   * without a job such an answer is an error. From 5,000; default 50,000.
   */
  maxAnswer?: number;
  _meta?: Record<string, unknown>;
}

/** What the edge's own tools have as well. */
export interface CallContext extends ToolContext {
  store: RemoteStore;
  /** Whether the client says that it shows cards, and so keeps from its model what is for them alone. */
  showsCards: boolean;
  /** How long a call waits for its job where its caller asked for no progress, in milliseconds. */
  patience: number;
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
  /** Whether a call may take long. Its answer is then streamed from the start, which keeps the connection alive. */
  readonly waits: boolean;
  /** What `tools/list` says of it. */
  readonly listing: Record<string, unknown>;
  /** The arguments by which a model says that the user agreed to something. */
  readonly consent?: readonly string[];
  /** The most characters of an answer; 50,000 when left out. */
  readonly maxAnswer?: number;
  /** The job that it starts. */
  readonly job?: Job;
  /** Whether a call is answered with the job's name at once. */
  readonly returnsAtOnce?: boolean;
  /** @throws {ToolError} */
  call(args: unknown, context: CallContext): Promise<CallToolResult | InputRequiredResult>;
  /**
   * Present where the tool's work is one job, which is a task to a client that understands tasks.
   *
   * @throws {ToolError}
   */
  start?(args: unknown, context: CallContext): Promise<DurablePromise | InputRequiredResult>;
  /**
   * Reads a resource that its results may refer to. `resources/read` asks the tools in turn, those with one function once.
   *
   * @throws {ProtocolError}
   */
  read?(uri: string, context: CallContext): Promise<{ contents: unknown[] }>;
  /** Present where a call's job can be found without starting it: the newest of it. @throws {ToolError} */
  find?(args: unknown, context: ToolContext): Promise<Started | undefined>;
  /** Whether the tool can serve only clients that understand tasks. */
  readonly tasksOnly?: boolean;
}

/**
 * A tool that has no job of its own: it computes its answer, or looks at jobs.
 *
 * @example
 * export const now = plainTool({
 *   name: "now", title: "The time", description: "Tells the time.", input: z.object({}),
 *   output: z.object({ time: z.string() }), run: async (_args, { now }) => ({ time: new Date(now).toISOString() }),
 * });
 */
export function plainTool<Args, Output extends object>(
  tool: ToolOptions<Args> & {
    output: Schema<Output>;
    run(args: Args, context: ToolContext): Promise<Output>;
  },
): Tool {
  return defineTool(tool);
}

/** Makes a tool of a function from arguments to structured output; for the edge's own tools as well. */
export function defineTool<Args, Output extends object>(
  tool: ToolOptions<Args> & {
    output: Schema<Output>;
    waits?: boolean;
    run(args: Args, context: CallContext): Promise<Output>;
  },
): Tool {
  return {
    ...describeTool(tool, tool.output),
    waits: tool.waits === true,
    call: async (args, context) => structured(await tool.run(args as Args, context)),
  };
}

/** What `tools/list` says of a tool, computed once. */
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
  const raw = RAW.get(tool.input);
  const isOpen = raw ? raw.additionalProperties !== false : json.additionalProperties !== undefined;
  const input = { schema: tool.input as z.ZodType<unknown>, json, isOpen };
  const listing = {
    name,
    title,
    description,
    // Plain JSON Schema is told as its author wrote it.
    inputSchema: raw ? input.json : lenientForms(input.json),
    outputSchema: jsonOf(name, "output", output),
    annotations: { title, ...hintsOf(annotations) },
    ...(_meta && { _meta }),
  };
  return { name, input, listing, ...(consent && { consent }), ...(maxAnswer !== undefined && { maxAnswer }) };
}

/** All hints, those left out as the protocol has them: directories list no tool that leaves them to be known. */
function hintsOf({ readOnlyHint = false, ...said }: ToolAnnotations): ToolAnnotations {
  return { readOnlyHint, destructiveHint: !readOnlyHint, idempotentHint: readOnlyHint, openWorldHint: true, ...said };
}

/** A refusal, as all begin: what is wrong with each argument, or a reason. */
export function refusal(tool: string, problems: readonly string[]): string {
  const [first = ""] = problems;
  if (first.startsWith(REFUSED)) return problems.join("\n");
  if (!/^\w+: /.test(first)) return `${REFUSED} ${problems.join("\n")}`;
  return [`${REFUSED} ${tool} does not accept these arguments.`, ...problems].join("\n");
}

const REFUSED = "Nothing was done:";

function jsonOf(tool: string, io: "input" | "output", schema: Schema<unknown>): JsonSchema {
  const json = schema?._zod ? (RAW.get(schema) ?? fromZod(tool, io, schema)) : {};
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
    throw new Error(`${tool}: its ${io} cannot be said in JSON Schema: ${(error as Error).message}`, { cause: error });
  }
}
