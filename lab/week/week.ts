/**
 * A simulated week: callers start jobs all day on a server with a retention of one day. The state is measured each night.
 *
 *   npm run week -- [--days 7] [--jobs 10000] [--retention 1]
 *
 * `--jobs` is the number of jobs per day, of ten callers. 70 % gather a month, the others are timers of up to 20 hours.
 * Exits with 0 if rows, size, memory and the CPU time of a start have grown by at most 15 % since the third day, when the
 * first data has expired.
 */
import { loadavg } from "node:os";
import { parseArgs } from "node:util";
import { type DayEnd, simulateDays } from "../../test/days/days.ts";

const { values } = parseArgs({
  options: {
    days: { type: "string", default: "7" },
    jobs: { type: "string", default: "10000" },
    retention: { type: "string", default: "1" },
  },
});
const [days, jobs, retentionDays] = [Number(values.days), Number(values.jobs), Number(values.retention)];

/** The accepted growth. */
const LIMIT = 0.15;
/** The day to compare the last one with: before it, no data has expired. */
const FULL = Math.ceil(retentionDays) + 2;

if (!(days > FULL)) throw new Error(`--days has to be more than ${FULL}: until then it grows`);
console.log(`Load of the machine before: ${loadavg()[0]}`);
const begun = performance.now();
const ends: DayEnd[] = [];
for await (const end of simulateDays({ days, jobs, parts: 24, callers: 10, retentionDays, restarts: true })) {
  ends.push(end);
  const { rows, ...others } = end;
  console.log(
    JSON.stringify({ ...others, ...rows, minutes: Number(((performance.now() - begun) / 60_000).toFixed(1)) }),
  );
}

const figures: Record<string, (end: DayEnd) => number> = {
  promises: ({ rows }) => rows.promises,
  tasks: ({ rows }) => rows.tasks,
  listeners: ({ rows }) => rows.listeners,
  "file, MB": ({ file }) => Math.round(file),
  "of it in use, MB": ({ used }) => Math.round(used),
  "server, MB": ({ server }) => server,
  "worker, MB": ({ worker }) => worker,
  "edge, MB": ({ edge }) => edge,
  "start, ms of CPU time": ({ start = 0 }) => start,
  "started with, MB": ({ startedWith = 0 }) => startedWith,
};
console.table(
  Object.fromEntries(
    Object.entries(figures).map(([name, of]) => [
      name,
      Object.fromEntries(ends.map((end) => [`day ${end.day}`, of(end)])),
    ]),
  ),
);
const grown = Object.entries(figures).filter(([, of]) => {
  const [then, last] = [ends[FULL - 1], ends.at(-1)];
  return then && last && of(last) > of(then) * (1 + LIMIT);
});
console.log(grown.length === 0 ? "Level." : `Not level: ${grown.map(([name]) => name).join("; ")}`);
process.exit(grown.length === 0 ? 0 : 1);
