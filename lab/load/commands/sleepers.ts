/**
 * Writes many timers, due over the next hours, into the database of the server 0.9.8 at RESONATE_URL, as copies of one that was
 * set through the edge. Measures the server at rest with them, and then under mixed traffic.
 *
 *   npm run load -- --sleepers 1000000 [--hours 24] [--rest 60] [--seconds 120] [--rate 20]
 *                   (--sqlite FILE | --postgres URL --database-pid PID) --resonate-pid PID --metrics-url URL
 *
 * Prints the usage of each process, and how late timers were. Exits with 0 if every answer and every timer was correct.
 */
import { parseArgs } from "node:util";
import type { Database } from "../plant.ts";
import { runSleepers } from "../sleepers.ts";
import { mapped, number, round, summary } from "./tables.ts";

export async function run(): Promise<number> {
  const { values } = parseArgs({
    options: {
      sleepers: { type: "string" },
      hours: number(24),
      rest: number(60),
      seconds: number(120),
      rate: number(20),
      sqlite: { type: "string" },
      postgres: { type: "string" },
      "resonate-pid": { type: "string" },
      "database-pid": { type: "string" },
      "metrics-url": { type: "string" },
    },
  });
  const { sqlite, postgres, "resonate-pid": pid, "database-pid": databasePid, "metrics-url": metricsUrl } = values;
  const database: Database | undefined =
    sqlite !== undefined ? { sqlite } : postgres !== undefined ? { postgres } : undefined;
  if (!process.env.RESONATE_URL || !database || pid === undefined || metricsUrl === undefined)
    throw new Error("RESONATE_URL, --sqlite or --postgres, --resonate-pid and --metrics-url name the server");
  const { usage, messages, due, latencies, wrong } = await runSleepers({
    sleepers: Number(values.sleepers),
    hours: Number(values.hours),
    rest: Number(values.rest),
    seconds: Number(values.seconds),
    rate: Number(values.rate),
    database,
    resonatePid: Number(pid),
    databasePid: databasePid === undefined ? undefined : Number(databasePid),
    metricsUrl,
    say: console.log,
  });
  console.table(mapped(usage, (used) => mapped({ ...used }, round)));
  console.log(`Messages a minute: ${round(messages.rest)} at rest, ${round(messages.traffic)} under traffic`);
  console.log(`${due} sleepers fell due. Milliseconds:`);
  console.table(mapped(latencies, summary));
  for (const what of wrong.slice(0, 10)) console.log(`Wrong: ${what}`);
  return wrong.length === 0 ? 0 : 1;
}
