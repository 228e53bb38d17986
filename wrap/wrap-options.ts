/** What is said of a server that exists, to put durability in front of it. */

/**
 * How calls of a tool are treated, where its own annotations say nothing, or not what is true.
 *
 * @example
 * const reports: CallPolicy = { repeatable: true, freshFor: 10 * MINUTE };
 */
export interface CallPolicy {
  /**
   * Whether a call may be sent again after a crash or a lost connection. Default: where the tool says of itself that it
   * only reads (`readOnlyHint`) or that a repeat changes nothing (`idempotentHint`).
   */
  repeatable?: boolean;
  /**
   * Calls with the same arguments are one job while it runs and for so many milliseconds after; 0: while it runs. For tools
   * that only read. Default: each call is its own job.
   */
  freshFor?: number;
  /** Whether the tool is the same for every caller, so that callers share those jobs. Default false. */
  shared?: boolean;
}

/**
 * A server that exists, and how it is reached: by a URL (streamable HTTP), or by a command that speaks over stdio. Only
 * workers reach it. Where a value holds `$(NAME)`, that variable of the worker's environment stands there.
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
  /** What the server is called here: small letters, digits and `-`. The names of its jobs begin with it. */
  name: string;
  /** Its endpoint. */
  url?: string;
  /** Sent with every request to `url`. */
  headers?: Record<string, string>;
  /** Whether `url` may lead into a private network or to this machine, which is refused otherwise. */
  allowPrivate?: boolean;
  /** The program that is the server. It is started by the worker, and again when it has ended. */
  command?: string;
  args?: readonly string[];
  /** The variables that the program gets. It gets `PATH`, `HOME` and the like besides, and nothing else of the worker's. */
  env?: Record<string, string>;
  /** The folder that the program runs in. Default: the worker's. */
  cwd?: string;
  /**
   * How long the program goes on when its worker was killed, in milliseconds: the next worker on the machine takes it over,
   * with the calls that are under way in it. Default two minutes; 0: it ends with its worker.
   */
  keep?: number;
  /** The tools that are passed on: names, in which `*` stands for anything. Default: all. */
  tools?: readonly string[];
  /** Put before the names of its tools, with `_` between. */
  prefix?: string;
  /**
   * For how many milliseconds a call waits for the server's answer; then the job's name is the answer. Default: the edge's
   * WAIT_SECONDS (4 seconds), which is below the limits of clients that are known. One that asks to be told of progress is
   * told, and waits for 45 seconds.
   */
  after?: number;
  /** By the names of tools, in which `*` stands for anything; the first that fits counts. */
  policies?: Readonly<Record<string, CallPolicy>>;
  /** How many calls each worker makes at once. Default 16. */
  concurrency?: number;
  /** How long the server may take for a call, in milliseconds. Default an hour. */
  timeout?: number;
  /**
   * The variable of the worker's environment that says what each caller's requests carry, as JSON: from the caller's id, or
   * `*` for all others, to header names and values (for `url`) or variables (for `command`). A caller who is not in it is
   * refused. Every caller has a connection, or a process, of his own.
   */
  credentials?: string;
}

/** @throws {Error} for options that cannot be */
export function checkOptions(options: WrapOptions): void {
  const { name, url, command, headers, env, keep, after, concurrency, timeout } = options;
  const wrong = (what: string): never => {
    throw new Error(`wrapServer: ${what}`);
  };
  if (!/^[a-z][a-z0-9-]{0,30}$/.test(name)) {
    wrong(`a name is up to 31 small letters, digits and "-", beginning with a letter, not ${JSON.stringify(name)}`);
  }
  if ((url === undefined) === (command === undefined)) wrong(`${name} has a url, or a command: one of them`);
  if (url !== undefined && !(URL.canParse(url) && /^https?:$/.test(new URL(url).protocol))) {
    wrong(`the url of ${name} is no http or https URL`);
  }
  if (url === undefined && headers !== undefined) wrong(`${name} has headers, which only a url takes`);
  if (command === undefined && env !== undefined) wrong(`${name} has env, which only a command takes`);
  if (url !== undefined && keep !== undefined) wrong(`${name} has keep, which only a command takes`);
  if (keep !== undefined && !(keep >= 0)) wrong(`keep of ${name} is ${keep}; it takes 0 or more`);
  for (const [what, value] of Object.entries({ after, concurrency, timeout })) {
    if (value !== undefined && !(value >= 1)) wrong(`${what} of ${name} is ${value}; it takes 1 or more`);
  }
}

/** Whether a name fits a pattern, in which `*` stands for anything. */
export function fits(pattern: string, name: string): boolean {
  const [first = "", ...rest] = pattern.split("*");
  if (rest.length === 0) return name === pattern;
  if (!name.startsWith(first)) return false;
  let at = first.length;
  const last = rest.pop() as string;
  for (const part of rest) {
    const found = name.indexOf(part, at);
    if (found < 0) return false;
    at = found + part.length;
  }
  return name.length - last.length >= at && name.endsWith(last);
}
