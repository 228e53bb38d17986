/**
 * `proxy [url] [options]`: serves a hosted MCP endpoint over stdio, for clients that speak only stdio. It runs mcp-remote
 * with this project's defaults; mcp-remote's options (`--header`, `--protocol auto`, ...) follow the URL. The token comes
 * from `MCP_TOKEN` in the environment, because every user of the machine can read arguments.
 */
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
import { ask } from "../doctor/finding.ts";
import { localEndpoint } from "../launcher/data-directory.ts";
import { resolveModule } from "../package.ts";
import { commandLine, readProject } from "../project.ts";
import { printError } from "../terminal/print.ts";

export const usage = () => `Usage: ${withoutNpmOutput(commandLine(readProject(), "proxy", "[URL] [options]"))}

Serves the MCP endpoint at URL (by default that of the stack on this machine) over stdio, for a client that speaks nothing
else. Options go to mcp-remote: --header "Name: value", --protocol auto and more.

MCP_TOKEN in the environment is the token to send (as Authorization: Bearer). An argument could be read by every user of
the machine.
`;

/** npm must not write to standard output, which belongs to the MCP client. */
const withoutNpmOutput = (command: string) => command.replace(/^npm run /, "npm run --silent ");

export async function run(args: string[]): Promise<void> {
  const [first, ...rest] = args;
  const hasUrl = first !== undefined && !first.startsWith("-");
  const url = hasUrl ? first : localEndpoint();
  const options = hasUrl ? rest : args;

  const answer = await ask(url, { method: "HEAD" });
  if (answer.status === undefined) {
    const project = readProject();
    const proxyCommand = withoutNpmOutput(commandLine(project, "proxy", "URL"));
    printError(
      `No server answers at ${url} (${answer.reason}). Start it: ${commandLine(project, "start")}; or give its URL: ${proxyCommand}`,
    );
    process.exit(1);
  }
  // A call that awaits a job may be silent for minutes. By default, mcp-remote gives up after five minutes.
  const timeouts = ["--headers-timeout", "600", "--body-timeout", "0"];
  if (options.some((option) => /^authorization:/i.test(option.trim()))) {
    printError("Every user of this machine can read the token in these arguments. Set it as MCP_TOKEN instead.");
  }
  const { MCP_TOKEN: token } = process.env;
  // Other users cannot see arguments that are set only inside this process.
  const authorization = token ? ["--header", `Authorization:Bearer ${token}`] : [];
  const proxyArgs = [url, "--transport", "http-only", "--allow-http", ...timeouts, ...authorization, ...options];
  process.argv.splice(2, Infinity, ...proxyArgs);
  const program = resolveModule("mcp-remote/dist/proxy.js", process.cwd());
  nameTasks(program);
  await import(pathToFileURL(program).href);
}

/**
 * Adds the `Mcp-Name` header to requests about tasks; mcp-remote sends it only for tools, prompts and resources. Must run
 * before mcp-remote is imported, which reads `fetch` from undici at its import.
 */
function nameTasks(program: string): void {
  const undici = createRequire(program)("undici") as { fetch: (url: unknown, init?: RequestInit) => unknown };
  const { fetch } = undici;
  undici.fetch = (url, init) => {
    const taskId = taskIn(init?.body);
    if (taskId === undefined) return fetch(url, init);
    const headers = new Headers(init?.headers);
    if (!headers.has("mcp-name")) headers.set("mcp-name", taskId);
    return fetch(url, { ...init, headers: [...headers] });
  };
}

/** The task id in a message about a task, if a header can hold it. */
function taskIn(body: unknown): string | undefined {
  if (typeof body !== "string" || !body.includes('"tasks/')) return undefined;
  const { method, params } = JSON.parse(body) as { method?: unknown; params?: { taskId?: unknown } };
  const id = params?.taskId;
  const isNamed = typeof method === "string" && /^tasks\/(get|update|cancel)$/.test(method);
  return isNamed && typeof id === "string" && /^[\x21-\x7e]+$/.test(id) ? id : undefined;
}
