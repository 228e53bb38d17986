/** Reads the arguments that describe a server to wrap. */
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { parseArgs, parseEnv } from "node:util";
import { checkOptions, type WrapOptions } from "../../wrap/wrap-options.ts";
import { flag, option, optionList } from "../arguments.ts";
import { optionsOf } from "../launcher/start-options.ts";
import { printError } from "../terminal/print.ts";

/** The options of `wrap` and `sync`. */
export const OPTIONS = {
  name: option("NAME", "the server's name here (default: from its URL or command)"),
  tools: option("'a,b_*'", "the tools to offer (default: all)"),
  prefix: option("NAME", "a prefix for the names of its tools"),
  after: option("SECONDS", "how long a call waits for its result before it returns its job (default 4)"),
  concurrency: option("N", "how many calls are made at once (default 16)"),
  processes: option(
    "N",
    "how many processes of a command run, each for one call at a time, so that a question belongs to its call",
  ),
  "start-timeout": option("SECONDS", "how long it may take to start (default: 30 for a URL, 600 for a command)"),
  revision: option(
    "DATE",
    "the revision of the protocol to speak, such as 2025-11-25 (default: the newest that it has)",
  ),
  repeatable: option("'a,b_*'", "tools whose calls may be repeated, despite their annotations"),
  once: option("'a,b_*'", "tools whose calls must not be repeated"),
  header: optionList("'NAME: VALUE'", "a header for every request to a URL; may be repeated"),
  env: optionList(
    "NAME[=VALUE]",
    "an environment variable for a command, by default with this shell's value; may be repeated",
  ),
  "header-file": option(
    "FILE",
    "a file with such headers, one on each line: every user of the machine can read arguments",
  ),
  "env-file": option("FILE", "such variables, one on each line"),
  follow: flag("accept every change of its tools at once, also those that would wait for you"),
  apps: flag("let hosts show the server's own MCP Apps, which may then call every tool here"),
  "allow-private": flag("allow a URL in a private network, or on this machine"),
};

/** Matches the name and password in a URL, and the values of its query. */
const URL_VALUES = /(?<=:\/\/)[^/?#]+(?=@)|(?<=[?&][^=&#]*=)[^&#]+/g;
const isPlain = (value: string) => !value.includes("$(");

const readOptions = (args: string[]) => parseArgs({ args, options: OPTIONS, allowPositionals: true });
type Values = ReturnType<typeof readOptions>["values"];

/**
 * `hidesUrl`: values in the URL are secrets too. `wrap` keeps them in the URL, which identifies the server's state.
 *
 * @throws {Error} that names the wrong argument
 */
export function wrapArguments(args: readonly string[], env: NodeJS.ProcessEnv, { hidesUrl = false } = {}) {
  const end = args.indexOf("--");
  const command = end < 0 ? [] : args.slice(end + 1);
  const { own, rest } = splitArguments(end < 0 ? args : args.slice(0, end));
  const { values, positionals } = readOptions(own);
  const url = urlIn(positionals, command);
  checkTarget(url, values);
  const name = values.name ?? nameOf(url, command);
  const secrets = new Secrets(name);
  const options: WrapOptions = {
    name,
    ...targetOf(url, command, { values, secrets, hidesUrl }),
    ...environmentOf(values, env, secrets),
    ...policyOptions(values),
  };
  checkOptions(options);
  const isExposed =
    values.header !== undefined ||
    url?.match(URL_VALUES)?.some(isPlain) === true ||
    values.env?.some((each) => each.includes("=")) === true;
  return {
    options,
    /** Whether the user has given the server's name. */
    isNamed: values.name !== undefined,
    /** The arguments for `start`. */
    rest,
    /** The values of the variables that the options refer to, so that no file contains secrets. */
    secrets: secrets.values,
    /** Whether the arguments themselves contain values of headers or variables, or of a URL's query. */
    isExposed,
  };
}

/** Values that options name by variables. */
class Secrets {
  readonly values: Record<string, string> = {};
  readonly #prefix: string;

  constructor(serverName: string) {
    // With the server's name in it, because the servers of one project share their worker's environment.
    this.#prefix = `WRAP_SECRET_${serverName.toUpperCase().replace(/\W/g, "_")}`;
  }

  /** Stores a value, and returns the reference to it. */
  add(value: string): string {
    const variable = `${this.#prefix}_${Object.keys(this.values).length + 1}`;
    this.values[variable] = value;
    return `$(${variable})`;
  }
}

function urlIn([url, ...others]: readonly string[], command: readonly string[]): string | undefined {
  if (others.length > 0) throw new Error(`There is one URL at most, not ${[url, ...others].join(" ")}.`);
  if ((url === undefined) === (command.length === 0)) {
    throw new Error("Give the URL of a server, or a command after --.");
  }
  if (url !== undefined && !(URL.canParse(url) && /^https?:$/.test(new URL(url).protocol))) {
    throw new Error(`${url} is not an http or https URL. A command goes after --.`);
  }
  return url;
}

/** Checks that headers are for a URL, and variables for a command. */
function checkTarget(url: string | undefined, values: Values): void {
  if (url !== undefined && (values.env || values["env-file"])) {
    throw new Error("--env is for a command: a URL accepts --header.");
  }
  if (url === undefined && (values.header || values["header-file"])) {
    throw new Error("--header is for a URL: a command accepts --env.");
  }
}

/** The options that name the server: a URL with its headers, or a command. */
function targetOf(
  url: string | undefined,
  command: readonly string[],
  { values, secrets, hidesUrl }: { values: Values; secrets: Secrets; hidesUrl: boolean },
): Partial<WrapOptions> {
  const [program = "", ...args] = command;
  if (url === undefined) return { command: program, args, cwd: resolve(".") };
  const storedUrl = hidesUrl ? url.replace(URL_VALUES, (value) => (isPlain(value) ? secrets.add(value) : value)) : url;
  const headers = headersOf(values).map(([name, value]) => [name, secrets.add(value)]);
  return { url: storedUrl, ...(headers.length > 0 && { headers: Object.fromEntries(headers) }) };
}

/** The headers of the arguments and of the file with headers. */
function headersOf({ header = [], "header-file": file }: Values): [name: string, value: string][] {
  const lines = file === undefined ? [] : readFileSync(file, "utf8").split("\n");
  const fileHeaders = lines.map((line) => line.trim()).filter((line) => line !== "" && !line.startsWith("#"));
  return [...header, ...fileHeaders].map((text, i) => {
    const [, name, value] = /^([^:\s]+):\s*(.*)$/.exec(text) ?? [];
    if (name !== undefined && value !== undefined) return [name, value];
    // A wrong line of a file may contain a secret, so the message does not show it.
    throw new Error(
      i < header.length
        ? `--header accepts "NAME: VALUE", not "${text}"`
        : `${file} holds a line that is not of the form "NAME: VALUE"`,
    );
  });
}

/** The option with the command's environment variables, those of the arguments and of the file with variables. */
function environmentOf(values: Values, env: NodeJS.ProcessEnv, secrets: Secrets): Pick<WrapOptions, "env"> {
  const variables = (values.env ?? []).map((text): [string, string] => {
    const at = text.indexOf("=");
    const name = at < 0 ? text : text.slice(0, at);
    const value = at < 0 ? env[name] : text.slice(at + 1);
    if (value === undefined) throw new Error(`--env ${name}: this shell has no variable of that name`);
    return [name, secrets.add(value)];
  });
  const file = values["env-file"];
  const fileVariables = file === undefined ? {} : parseEnv(readFileSync(file, "utf8"));
  for (const [name, value = ""] of Object.entries(fileVariables)) variables.push([name, secrets.add(value)]);
  return variables.length > 0 ? { env: Object.fromEntries(variables) } : {};
}

/** The options that say how the server's tools are offered. */
function policyOptions(values: Values): Partial<WrapOptions> {
  const after = values.after === undefined ? undefined : Number(values.after);
  if (after !== undefined && !(after > 0 && after <= 300)) throw new Error("--after accepts seconds, up to 300");
  const concurrency = numberOf(values, "concurrency");
  const processes = numberOf(values, "processes");
  const startTimeout = numberOf(values, "start-timeout");
  const policies = Object.fromEntries([
    ...list(values.once).map((pattern) => [pattern, { repeatable: false }]),
    ...list(values.repeatable).map((pattern) => [pattern, { repeatable: true }]),
  ]);
  return {
    ...(values.follow && { follow: true }),
    ...(values.apps && { apps: true }),
    ...(values["allow-private"] && { allowPrivate: true }),
    ...(values.tools !== undefined && { tools: list(values.tools) }),
    ...(values.prefix !== undefined && { prefix: values.prefix }),
    ...(after !== undefined && { after: after * 1_000 }),
    ...(concurrency !== undefined && { concurrency }),
    ...(processes !== undefined && { processes }),
    ...(startTimeout !== undefined && { startTimeout: startTimeout * 1_000 }),
    ...(values.revision !== undefined && { revision: values.revision }),
    ...(Object.keys(policies).length > 0 && { policies }),
  };
}

function numberOf(values: Readonly<Record<string, unknown>>, name: string): number | undefined {
  const value = values[name] === undefined ? undefined : Number(values[name]);
  if (value !== undefined && !(value >= 1)) throw new Error(`--${name} accepts a number from 1`);
  return value;
}

/** Hides exposed arguments from the list of processes, and says how to pass them without exposing them. */
export function hideArguments({ isExposed }: { isExposed: boolean }): void {
  if (!isExposed) return;
  process.title = "durable-mcp-edge";
  printError(
    "Every user of this machine could read the values of --header, of --env and in the URL when this began. Give them by --header-file, --env-file, or --env NAME, and in the URL as '$(NAME)', for a variable of this shell.",
  );
}

/** Separates the arguments about the wrapped server from those for `start`. */
function splitArguments(args: readonly string[]): { own: string[]; rest: string[] } {
  const options = { ...optionsOf([]), ...OPTIONS };
  const { tokens } = parseArgs({ args: [...args], options, strict: false, allowPositionals: true, tokens: true });
  const isOwn = (token: (typeof tokens)[number]) =>
    token.kind !== "option" || !token.rawName.startsWith("--") || Object.hasOwn(OPTIONS, token.name);
  const textsOf = ({ index, ...token }: (typeof tokens)[number]) =>
    args.slice(index, index + (token.kind === "option" && token.inlineValue === false ? 2 : 1));
  return {
    own: tokens.filter(isOwn).flatMap(textsOf),
    rest: tokens.filter((token) => !isOwn(token)).flatMap(textsOf),
  };
}

const list = (text: string | undefined): string[] =>
  (text ?? "")
    .split(",")
    .map((each) => each.trim())
    .filter(Boolean);

/** Derives a name: `acme` from `https://mcp.acme.example/mcp`, `report-server` from `python report_server.py`. */
function nameOf(url: string | undefined, command: readonly string[]): string {
  if (url !== undefined) {
    const labels = new URL(url).hostname.split(".");
    const words = labels.filter((label) => /[a-z]/i.test(label) && !/^(mcp|www|api)$/i.test(label));
    return clean(words.length > 1 ? (words.at(-2) as string) : (words[0] ?? "server"));
  }
  const words = command.slice(1).filter((word) => !word.startsWith("-"));
  const script = words.find((word) => /[./]|^@|server|mcp/i.test(word)) ?? words[0] ?? command[0] ?? "server";
  const parts = script.replace(/\.([cm]?[jt]s|py)$/, "").split("/");
  return clean(
    parts.findLast((part) => !/^(|\.+|app|bin|build|dist|index|lib|main|out|server|src)$/.test(part)) ?? "server",
  );
}

function clean(text: string): string {
  const name = text
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "-")
    .replace(/^[^a-z]+|-+$/g, "")
    .slice(0, 31);
  return name === "" ? "server" : name;
}
