/** The job of one call to a wrapped server. */
import * as z from "zod";
import { DAY, defineJob, type Job, NonRetryableError } from "../core/author/index.ts";
import { answerReader, readAnswersBy } from "../core/tools/index.ts";

/** How a call was sent: the time, and the program host that keeps its answer. Steps store it, so fields must keep their names. */
const SendRecord = z.object({
  at: z.string(),
  hostRequest: z.object({ host: z.string(), request: z.string() }).optional(),
});
export type SendRecord = z.infer<typeof SendRecord>;

/** The arguments of the job. */
export const CallArgs = z.object({
  /** The server's name for the tool; or another {@link Method}, whose parameters are the arguments. */
  tool: z.string(),
  arguments: z.record(z.string(), z.unknown()),
  /** The caller's `_meta`, without the fields that concern only the caller's connection to the edge. */
  meta: z.record(z.string(), z.unknown()).optional(),
  /** Identifies the call among those of the tool. */
  key: z.string(),
  /** Whether the call is sent at most once, by the policy at the start of the job. */
  once: z.boolean(),
  /** The lowest level of log messages that the caller has asked for. */
  log: z.string().optional(),
  /** How long the result answers further calls with the same arguments, in milliseconds. */
  fresh_for: z.number().optional(),
  /** How the call was sent before it became a job. The worker that sent it still has it. */
  send_record: SendRecord.optional(),
});
export type CallArgs = z.infer<typeof CallArgs>;

/** The requests that a job may make besides calling a tool. No tool name contains a slash. */
export type Method = "resources/read" | "prompts/get" | "completion/complete" | "resources/subscribe";

/** Whether a job's `tool` is a {@link Method}. */
export const isMethod = (tool: string): tool is Method => tool.includes("/");

/** The code of errors of calls that the server has certainly not executed, and so may be repeated. */
const NOTHING_DONE = "nothing_done";

/** Says of a call that the server has certainly not executed it. */
export const nothingDone = (why: string): string => `Nothing was done: ${why}`;

/** The error of a call that the server has certainly not executed. Steps and jobs store its code. */
export class NothingDone extends Error {
  readonly code = NOTHING_DONE;

  constructor(why: string, options?: ErrorOptions) {
    super(nothingDone(why), options);
  }
}

/** The same if another attempt cannot help. */
export class NothingDoneFinally extends NonRetryableError {
  readonly code = NOTHING_DONE;

  constructor(why: string) {
    super(nothingDone(why));
  }
}

/** How long a job may take, in milliseconds. It includes the time that questions wait for an answer; the server's limit is shorter. */
const DEADLINE_MS = 7 * DAY;

readAnswersBy(answerReader);

export function callJob(kind: string, prefix: string, { shared, apps }: Pick<Job, "shared" | "apps">): Job<CallArgs> {
  return defineJob<CallArgs>({
    kind,
    prefix,
    args: CallArgs,
    id: ({ tool, key }) => `${tool.replace("/", "-")}.${key}`,
    otherArguments: "accept",
    deadline: DEADLINE_MS,
    shared,
    returnsToolResult: true,
    apps,
    runs: "container",
    // A repeat of a non-repeatable call gets the outcome of the first, even a failure.
    restarts: (error, { once }) => !once || error?.code === NOTHING_DONE,
    freshFor(result, { once, fresh_for }) {
      if (!once && (result as { isError?: boolean } | undefined)?.isError === true) return 0;
      return fresh_for;
    },
  });
}
