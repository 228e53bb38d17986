/** `pause KIND` and `resume KIND`: stop and continue the jobs of a kind. */
import { parseArgs } from "node:util";
import { PausedJobs } from "../../core/jobs/index.ts";
import { usageOf, WrongArguments } from "../arguments.ts";
import { print } from "../terminal/print.ts";
import { SERVER_OPTIONS, withServer } from "./resonate-server.ts";

export const usage = usageOf(
  "KIND [options]",
  `\`pause\` makes workers stop running jobs of a kind. Within five seconds they start none and resume none that sleeps or waits;
jobs that execute at the moment continue to their next sleep or end. Jobs can still be started, and wait. The pause lasts until
\`resume\`, also when servers or workers restart. Deadlines do not move.`,
  SERVER_OPTIONS,
);

export async function run(args: string[], command: string): Promise<void> {
  const { values, positionals } = parseArgs({ args, allowPositionals: true, options: SERVER_OPTIONS });
  const [kind = "", ...rest] = positionals;
  if (rest.length > 0 || !/^\w+$/.test(kind)) throw new WrongArguments("Name one kind of job.");
  await withServer(values, async ({ client, namespace }) => {
    const kinds = new PausedJobs(client, namespace);
    if (command === "pause") {
      const since = await kinds.pause(kind);
      print(`Jobs of the kind ${kind} are paused since ${new Date(since).toISOString()}.`);
    } else {
      const wasPaused = await kinds.resume(kind);
      print(wasPaused ? `Jobs of the kind ${kind} continue.` : `Jobs of the kind ${kind} were not paused.`);
    }
  });
}
