import { MAX_TIMER_MS } from "../core/engine/index.ts";

/**
 * How calls of a tool are treated if the tool's annotations are missing or wrong.
 *
 * @example
 * const reports: CallPolicy = { repeatable: true, freshFor: 10 * MINUTE };
 */
export interface CallPolicy {
  /**
   * Whether a call may be sent again after a crash or a lost connection. Default: true for tools with `readOnlyHint` or
   * `idempotentHint`.
   */
  repeatable?: boolean;
  /**
   * Calls with the same arguments share one job while it runs, and for this many milliseconds after its end. For tools that only
   * read. Default: each call is its own job.
   */
  freshFor?: number;
  /** Whether all callers share these jobs, because the tool gives every caller the same answer. Default: false. */
  shared?: boolean;
}

/**
 * An existing server. Workers alone reach it, by a URL (streamable HTTP) or a command (stdio). In values, `$(NAME)` stands for the
 * variable NAME of the worker's environment.
 *
 * @example
 * const options: WrapOptions = {
 *   name: "acme",
 *   url: "https://mcp.acme.example/mcp",
 *   headers: { Authorization: "Bearer $(ACME_TOKEN)" },
 *   tools: ["report_*"],
 *   policies: { "report_*": { repeatable: true } },
 * };
 */
export interface WrapOptions {
  /** The server's name in this deployment: lower-case letters, digits and `-`. The names of its jobs begin with it. */
  name: string;
  /** The server's endpoint. */
  url?: string;
  /** Sent with every request to `url`. */
  headers?: Record<string, string>;
  /** Whether `url` may lead into a private network or to the worker's machine. Default: false. */
  allowPrivate?: boolean;
  /** The server's program. The worker starts it, and restarts it after its end. */
  command?: string;
  args?: readonly string[];
  /** The program's variables besides `PATH`, `HOME` and the like. It gets no other variables of the worker. */
  env?: Record<string, string>;
  /** The folder that the program runs in. Default: the worker's. */
  cwd?: string;
  /**
   * How long the program continues after its worker was killed, in milliseconds: the next worker on the machine takes it over with
   * its open calls. Default: two minutes; 0: it ends with its worker.
   */
  keep?: number;
  /**
   * How long the server may take to answer when a connection opens, and to list its tools, in milliseconds. Default: 30 s; for a
   * program ten minutes.
   */
  startTimeout?: number;
  /** The revision of the protocol to speak, for example `2025-11-25`. Default: the newest that the server has. */
  revision?: string;
  /** The names of the tools to offer, with `*` as a wildcard. Default: all. */
  tools?: readonly string[];
  /**
   * Whether every change of its tools is accepted at once. Default: false. Then only changes that narrow a tool are accepted at
   * once; a new tool, a changed text, a looser schema or a hint that a tool is safe waits for `sync --accept`.
   */
  follow?: boolean;
  /** A prefix for the names of its tools, followed by `_`. */
  prefix?: string;
  /**
   * How long a call waits for the server's answer, in milliseconds, before it answers with the job's name. Default: the edge's
   * WAIT_SECONDS (4 seconds), which is below the limits of known clients; 45 seconds for calls that ask for progress.
   */
  after?: number;
  /**
   * Whether hosts may show the server's own MCP Apps. A host treats them as the edge's apps: it may let them call every tool of
   * the edge, including `cancel_job` and `answer_for_user`, also for the jobs of other servers. Default: false; the edge's cards
   * are shown instead.
   */
  apps?: boolean;
  /** Policies by the names of tools, with `*` as a wildcard; the first match counts. */
  policies?: Readonly<Record<string, CallPolicy>>;
  /**
   * How many calls each worker makes at once. Default: 16. Authenticated callers take turns, and a single one gets no more than
   * three quarters. A call whose question waits for an answer is not counted.
   */
  concurrency?: number;
  /**
   * How many processes of a program each worker runs, in place of `concurrency`. Each serves one call at a time, so a question
   * belongs to a known call, and a process that ends loses only one call. A call whose question waits for an answer keeps
   * its process.
   */
  processes?: number;
  /**
   * How long the server may take for a call, in milliseconds. Default: an hour. A task of the 2026-07-28 revision may take longer, as
   * long as the server says how the task is.
   */
  timeout?: number;
  /**
   * The variable of the worker's environment that holds each caller's credentials, as a JSON object: it maps the caller's id, or
   * `*` for all others, to headers (for `url`) or variables (for `command`). Callers without credentials are refused, as are
   * `shared` calls without `*`. Each caller gets a separate connection or process.
   */
  credentials?: string;
}

/** The largest number of calls at once, or of processes. */
const MAX_CONCURRENCY = 10_000;

/** @throws {Error} for invalid options */
export function checkOptions(options: WrapOptions): void {
  const { name, url, command, headers, env, keep, after, concurrency, timeout, startTimeout, revision, processes } =
    options;
  const refuse = (why: string): never => {
    throw new Error(`wrapServer: ${why}`);
  };
  if (!/^[a-z][a-z0-9-]{0,30}$/.test(name)) {
    refuse(
      `a name is up to 31 lower-case letters, digits and "-", beginning with a letter, not ${JSON.stringify(name)}`,
    );
  }
  if ((url === undefined) === (command === undefined)) refuse(`${name} needs either a url or a command`);
  if (url !== undefined && !(URL.canParse(url) && /^https?:$/.test(new URL(url).protocol))) {
    refuse(`the url of ${name} is not an http or https URL`);
  }
  if (url === undefined && headers !== undefined) refuse(`${name} has headers, which only a url accepts`);
  if (command === undefined && env !== undefined) refuse(`${name} has env, which only a command accepts`);
  if (url !== undefined && keep !== undefined) refuse(`${name} has keep, which only a command accepts`);
  if (processes !== undefined && (url !== undefined || concurrency !== undefined)) {
    refuse(`${name} has processes, which only a command accepts, in place of concurrency`);
  }
  if (revision !== undefined && !/^20\d\d-\d\d-\d\d$/.test(revision)) {
    refuse(`revision of ${name} is ${JSON.stringify(revision)}; it is the date of one, as in 2025-11-25`);
  }
  if (keep !== undefined && !(keep >= 0)) refuse(`keep of ${name} is ${keep}; it accepts 0 or more`);
  const times = Object.entries({ keep, startTimeout }).map((entry) => [...entry, MAX_TIMER_MS] as const);
  const counts = Object.entries({ concurrency, processes }).map((entry) => [...entry, MAX_CONCURRENCY] as const);
  for (const [option, value = 0, maximum] of [...times, ...counts]) {
    if (value > maximum) refuse(`${option} of ${name} is ${value}; it accepts up to ${maximum}`);
  }
  for (const [option, value] of Object.entries({ after, concurrency, timeout, startTimeout, processes })) {
    if (value !== undefined && !(value >= 1)) refuse(`${option} of ${name} is ${value}; it accepts 1 or more`);
  }
}

/** Whether a name matches a pattern with `*` as a wildcard. */
export function matches(pattern: string, name: string): boolean {
  const [first = "", ...rest] = pattern.split("*");
  if (rest.length === 0) return name === pattern;
  if (!name.startsWith(first)) return false;
  let at = first.length;
  const last = rest.pop() as string;
  for (const part of rest) {
    const start = name.indexOf(part, at);
    if (start < 0) return false;
    at = start + part.length;
  }
  return name.length - last.length >= at && name.endsWith(last);
}
