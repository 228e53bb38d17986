/**
 * Runs many jobs at the same time, with many clients that wait for them, and prints the cost.
 *
 *   npm run load -- [--timers 10000] [--gatherings 2000] [--clients 500] [--workers 2] [--hold 120] [--spread 60]
 *                   [--json .build/load.json] [--resonate-pid PID]
 *
 * An embedded Resonate server with its state on disk keeps the jobs, or the server at RESONATE_URL, whose memory is printed if
 * its process is given. Exits with 0 if every job completed and none did so early.
 */
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { cpus, loadavg, tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { parseArgs } from "node:util";
import { type LoadResult, runLoad } from "../load.ts";
import { mapped, number, summary } from "./tables.ts";

export async function run(): Promise<number> {
  const { values } = parseArgs({
    options: {
      timers: number(10_000),
      gatherings: number(2_000),
      clients: number(500),
      workers: number(2),
      hold: number(120),
      spread: number(60),
      json: { type: "string", default: ".build/load.json" },
      "resonate-pid": { type: "string" },
    },
  });
  const { json, "resonate-pid": pid, ...sizes } = values;
  const options = mapped(sizes, Number) as { [Name in keyof typeof sizes]: number };

  const before = loadavg()[0];
  const data = await mkdtemp(join(tmpdir(), "load-"));
  let result: LoadResult;
  try {
    const resonatePid = pid === undefined ? undefined : Number(pid);
    result = await runLoad({ ...options, data, resonatePid, say: console.log });
  } finally {
    await rm(data, { recursive: true, force: true });
  }

  const { jobs, complete, mostInFlight, timersEarly, latencies, memory, seconds } = result;
  const milliseconds = mapped(latencies, summary);
  const machine = { cpus: `${cpus().length} × ${cpus()[0]?.model.trim()}`, node: process.version, loadBefore: before };
  const server = process.env.RESONATE_URL === undefined ? "embedded, state on disk" : "the one at RESONATE_URL";
  console.log(`\n${complete} of ${jobs} jobs complete, ${mostInFlight} at once; Resonate: ${server}`);
  console.log("Milliseconds");
  console.table(milliseconds);
  console.log("Memory (MB)");
  console.table(memory);
  await mkdir(dirname(json), { recursive: true });
  const told = { options, server, machine, jobs, complete, mostInFlight, timersEarly };
  await writeFile(json, JSON.stringify({ ...told, milliseconds, memory, seconds }, null, 2));
  console.log(`Written to ${json}`);
  return complete === options.timers + options.gatherings && jobs === complete && timersEarly === 0 ? 0 : 1;
}
