// oxlint-disable typescript/no-explicit-any -- each tool has types of its own
/** `durable-mcp-edge/client`: starts jobs from a program, and follows them. */

import type { JobView } from "../core/jobs/index.ts";
import type { DurableTool } from "../core/tools/index.ts";
import { Connection, ToolRefused, textOf } from "./connection.ts";
import { awaitJobs, readJob, WAIT_SECONDS } from "./jobs.ts";

export { ToolRefused } from "./connection.ts";

/**
 * The tools of a client: definitions by names of the program's own.
 *
 * @example
 * const tools: ClientTools = { waitForSite };
 */
export type ClientTools = Readonly<Record<string, DurableTool<any, any, any>>>;

/**
 * The options of {@link createClient}.
 *
 * @example
 * const options: ClientOptions<ClientTools> = { url: "http://127.0.0.1:8787/mcp", tools: { waitForSite } };
 */
export interface ClientOptions<Tools extends ClientTools> {
  /** The server's MCP endpoint. */
  url: string | URL;
  /** Sent as `Authorization: Bearer`. */
  token?: string | undefined;
  /** The tools that are started, which give their arguments and results types. */
  tools: Tools;
}

declare const RESULT: unique symbol;

/**
 * A job by its name, with the type of its result. Methods accept a name alone as well.
 *
 * @example
 * const known: JobReference<{ url: string }> = { name: "wait_for_site_https://example.com" };
 */
export interface JobReference<Result = unknown> {
  readonly name: string;
  readonly [RESULT]?: Result;
}

/**
 * What {@link JobClient.start} accepts for a tool.
 *
 * @example
 * const args: ArgumentsOf<typeof waitForSite> = { url: "https://example.com" };
 */
export type ArgumentsOf<Tool> =
  Tool extends DurableTool<infer Args, infer _Result, infer CallArgs>
    ? unknown extends CallArgs
      ? Args
      : CallArgs
    : never;

/**
 * What a tool's job results in.
 *
 * @example
 * const result: ResultOf<typeof waitForSite> = { url: "https://example.com" };
 */
export type ResultOf<Tool> = Tool extends DurableTool<any, infer Result, any> ? Result : never;

/**
 * The options of a start.
 *
 * @example
 * const options: StartOptions = { labels: ["release 42"] };
 */
export interface StartOptions {
  /** The labels of the job that it starts: up to 8 texts of 1 to 64 characters. A job that exists keeps those it has. */
  labels?: readonly string[];
}

/**
 * A job that finished without a result. The message says why.
 *
 * @example
 * const isCancelled = (error: unknown) => error instanceof JobNotComplete && error.status === "cancelled";
 */
export class JobNotComplete extends Error {
  override name = "JobNotComplete";
  readonly job: string;
  /** `failed`, `cancelled`, `timed_out` or `not_found`. */
  readonly status: string;

  constructor(job: string, status: string, why: string) {
    super(`${job} ${status}: ${why}`);
    this.job = job;
    this.status = status;
  }
}

/**
 * A program as a caller of a server. Every method asks again for up to a minute while the server does not answer, and
 * throws an `Error` after that.
 *
 * @example
 * const isUp = async (jobs: JobClient<{ waitForSite: typeof waitForSite }>, url: string) =>
 *   jobs.wait(await jobs.start("waitForSite", { url }), AbortSignal.timeout(60_000));
 */
export interface JobClient<Tools extends ClientTools> extends AsyncDisposable {
  /** Starts a job, or finds it if it exists, and returns at once. @throws {ToolRefused} for arguments that do not fit */
  start<Name extends keyof Tools & string>(
    tool: Name,
    args: ArgumentsOf<Tools[Name]>,
    options?: StartOptions,
  ): Promise<JobReference<ResultOf<Tools[Name]>>>;
  /**
   * The result of a job, however large and however long it takes. `signal` ends the wait, not the job.
   *
   * @throws {JobNotComplete} when the job finishes without a result
   */
  wait<Result>(job: string | JobReference<Result>, signal?: AbortSignal): Promise<Result>;
  /**
   * The job as `probe_status` describes it, now and after each change, until its end. `partial.values` holds only new values.
   * For the result see {@link JobClient.wait}.
   */
  follow(job: string | JobReference, signal?: AbortSignal): AsyncIterable<JobView>;
  /**
   * Answers an open question, by its key in `waiting_for`; null declines. A program that answers a question whose
   * `answered_by` is `user` speaks for its user.
   *
   * @throws {ToolRefused} for an answer that does not fit, and for a question that is not open
   */
  answer(job: string | JobReference, question: string, answer: unknown): Promise<void>;
  /** Stops a job for good. Resolves with false if it had finished, does not exist, or continues for others who started it. */
  cancel(job: string | JobReference): Promise<boolean>;
}

/** The time between two requests of {@link JobClient.follow} for a job, in seconds. */
const POLL_INTERVAL_SECONDS = 2;

/**
 * A client for backends, scripts and tests, which is typed by the definitions of the tools.
 *
 * @example
 * await using jobs = createClient({ url: "http://127.0.0.1:8787/mcp", tools: { waitForSite } });
 * jobs.start satisfies (tool: "waitForSite", args: { url: string }) => Promise<JobReference<{ url: string }>>;
 */
export function createClient<const Tools extends ClientTools>({
  url,
  token,
  tools,
}: ClientOptions<Tools>): JobClient<Tools> {
  const connection = new Connection({ url: new URL(url), token });
  return {
    async start(tool, args, { labels } = {}) {
      const answer = await connection.start(tools[tool]?.name ?? tool, args as object, labels);
      const { isError, content, structuredContent, _meta } = answer;
      const name = (_meta as { job_name?: string })?.job_name ?? (structuredContent as JobView)?.job_name;
      if (typeof name === "string") return { name };
      throw new ToolRefused(isError ? textOf(content) : `${tool}: its answer names no job`);
    },
    async wait<Result>(job: string | JobReference<Result>, signal?: AbortSignal) {
      const name = nameOf(job);
      while ((await awaitJobs(connection, [name], WAIT_SECONDS, signal)).length === 0);
      const { status, result, error = "no reason given" } = await readJob(connection, name, signal);
      if (status !== "complete") throw new JobNotComplete(name, status, error);
      return result as Result;
    },
    async *follow(job, signal) {
      const name = nameOf(job);
      let from = 0;
      for (let lastJson = ""; ;) {
        const args = { job_names: [name], result: "none", partial_from: from };
        const { statuses } = await connection.call("probe_status", args, signal && { signal });
        const [view] = statuses as [JobView];
        const { partial, ...rest } = view;
        from = partial?.next_offset ?? from;
        const json = JSON.stringify(rest);
        if (json !== lastJson || partial?.values.length) yield view;
        lastJson = json;
        if (partial?.more) continue;
        if (view.status !== "running") return;
        await awaitJobs(connection, [name], POLL_INTERVAL_SECONDS, signal);
      }
    },
    async answer(job, question, answer) {
      const args = { job_name: nameOf(job), question, answer: JSON.stringify(answer) };
      await connection.call("answer_for_user", args);
    },
    async cancel(job) {
      const name = nameOf(job);
      const { cancelled } = await connection.call("cancel_job", { job_names: [name] });
      return (cancelled as string[]).includes(name);
    },
    [Symbol.asyncDispose]: () => connection.close(),
  };
}

const nameOf = (job: string | JobReference): string => (typeof job === "string" ? job : job.name);
