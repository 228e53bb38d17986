/** `wait JOB...`: ends when the jobs have ended, for shells, CI steps and agents' background commands. */
import { parseArgs } from "node:util";
import { ended, WAIT, withResult } from "../../client/jobs.ts";
import { readArguments } from "../arguments.ts";
import { readProject, typed } from "../project.ts";
import { CLIENT_OPTIONS, CLIENT_USAGE, connectionTo, endpointOf } from "./options.ts";

export const usage = () => `Usage: ${typed(readProject(), "wait", "JOB... [options]")}

Waits until the jobs have ended. Of one job it prints the result as JSON; of several, a line of JSON for each as it ends.
The exit code is that of the first job, in the order given, that is not complete: 0 complete, 1 failed, 3 cancelled,
4 timed out, 5 not found; 124 where --timeout has passed first.

  --timeout S      wait for so many seconds at most
${CLIENT_USAGE}
`;

const CODES: Record<string, number> = { complete: 0, failed: 1, cancelled: 3, timed_out: 4, not_found: 5 };
const STILL_RUNNING = 124;

export async function run(args: string[]): Promise<void> {
  const { names, url, until } = readArguments(() => {
    const { values, positionals } = parseArgs({
      args,
      options: { ...CLIENT_OPTIONS, timeout: { type: "string" } },
      allowPositionals: true,
    });
    if (positionals.length === 0) throw new Error("Which job? Give its name as the tool that started it returned it.");
    const seconds = values.timeout === undefined ? Number.POSITIVE_INFINITY : Number(values.timeout);
    if (!(seconds > 0)) throw new Error("--timeout must be a number of seconds above 0.");
    return { names: [...new Set(positionals)], url: endpointOf(values.url), until: Date.now() + seconds * 1_000 };
  });
  const connection = connectionTo(url);
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
