/** `wait JOB...`: ends when the jobs have ended, for shells, CI steps and agents' background commands. */
import { parseArgs } from "node:util";
import type { Client } from "@modelcontextprotocol/client";
import * as z from "zod";
import { uriOf } from "../../core/tools/results.ts";
import { readArguments } from "../arguments.ts";
import { readProject, typed } from "../project.ts";
import { CLIENT_OPTIONS, CLIENT_USAGE, Connection, endpointOf } from "./connection.ts";

const usage = () => `Usage: ${typed(readProject(), "wait", "JOB... [options]")}

Waits until the jobs have ended. Of one job it prints the result as JSON; of several, a line of JSON for each as it ends.
The exit code is that of the first job, in the order given, that is not complete: 0 complete, 1 failed, 3 cancelled,
4 timed out, 5 not found; 124 where --timeout has passed first.

  --timeout S      wait for so many seconds at most
${CLIENT_USAGE}
`;

/** How long one request waits, in seconds. */
const WAIT = 45;

const CODES: Record<string, number> = { complete: 0, failed: 1, cancelled: 3, timed_out: 4, not_found: 5 };
const STILL_RUNNING = 124;

const Ended = z.looseObject({
  job_name: z.string(),
  status: z.string(),
  result: z.unknown().optional(),
  error: z.string().optional(),
  summary: z.looseObject({ part: z.string() }).optional(),
  next: z.string().optional(),
});
type Ended = z.infer<typeof Ended>;

export async function run(args: string[]): Promise<void> {
  const read = () => {
    const { values, positionals } = parseArgs({
      args,
      options: { ...CLIENT_OPTIONS, timeout: { type: "string" } },
      allowPositionals: true,
    });
    if (values.help) return undefined;
    if (positionals.length === 0) throw new Error("Which job? Give its name as the tool that started it returned it.");
    const seconds = values.timeout === undefined ? Number.POSITIVE_INFINITY : Number(values.timeout);
    if (!(seconds > 0)) throw new Error("--timeout must be a number of seconds above 0.");
    return { names: [...new Set(positionals)], url: endpointOf(values.url), until: Date.now() + seconds * 1_000 };
  };
  const options = readArguments(read, usage());
  if (!options) return;
  const { names, url, until } = options;
  const connection = new Connection(url);
  const codes = new Map<string, number>();
  try {
    while (codes.size < names.length && Date.now() < until) {
      const running = names.filter((name) => !codes.has(name));
      const seconds = Math.max(1, Math.min(WAIT, Math.ceil((until - Date.now()) / 1_000)));
      // The tool takes at most a hundred names.
      for (const name of await ended(connection, running.slice(0, 100), seconds)) {
        const job = await connection.ask((client) => withResult(client, name));
        codes.set(name, CODES[job.status] ?? 1);
        if (names.length > 1) console.log(JSON.stringify(job));
        else if (job.status === "complete") console.log(JSON.stringify(job.result));
        else console.error(`${name} ${job.status}: ${job.error ?? "no reason given"}`);
      }
    }
  } finally {
    await connection.close();
  }
  for (const name of names) {
    process.exitCode = codes.get(name) ?? STILL_RUNNING;
    if (process.exitCode !== 0) return;
  }
}

/** Those of the jobs that have ended within so many seconds, or of which there is nothing to wait for. */
async function ended(connection: Connection, names: string[], seconds: number): Promise<string[]> {
  const args = { job_names: names, timeout_seconds: seconds, result: "none" };
  const answer = await connection.ask(async (client) => {
    const { structuredContent, isError, content } = await client.callTool(
      { name: "await_result", arguments: args },
      { timeout: (seconds + 30) * 1_000 },
    );
    if (isError) throw new Error(content.map((part) => ("text" in part ? part.text : "")).join(" "));
    return structuredContent as { running?: string[] };
  });
  return names.filter((name) => !answer.running?.includes(name));
}

/** A job with its whole result, however large that is. */
async function withResult(client: Client, name: string): Promise<Ended> {
  let text = "";
  for (let uri: string | undefined = uriOf(name); uri !== undefined; ) {
    const { contents } = await client.readResource({ uri }).catch((error) => {
      if (error.code === -32602) return { contents: [] };
      throw error;
    });
    const [content] = contents;
    if (!content || !("text" in content))
      return { job_name: name, status: "not_found", error: "no job of this caller has this name" };
    const job: Ended = Ended.parse(JSON.parse(String(content.text)));
    text += job.summary?.part ?? "";
    if (!job.summary) return job;
    uri = job.next;
    if (uri === undefined) {
      const { summary: _, next: __, ...rest } = job;
      return { ...rest, result: JSON.parse(text) };
    }
  }
  throw new Error(`${name}: its result could not be read`);
}
