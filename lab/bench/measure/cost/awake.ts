/**
 * How long the objects of an account are awake for a job in the runner, and how many requests they get, since the platform
 * charges for both. Uses workerd, an archive that answers after half a second, and one job at a time.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { startEdge } from "../../../../cli/launcher/local-edge.ts";
import { currentClient } from "../../../../test/support/clients.ts";
import { watch } from "../../../../testing/stack/program.ts";
import { startSampleArchive } from "../../../../tools/weather/sample-archive/server.ts";
import { exactly, type Figure, figure } from "../../report/figures.ts";

const JOBS = 10;
/** How long the archive takes, in milliseconds. */
const ARCHIVE = 500;
/** When the connections of waiting callers are closed, in milliseconds. */
const REST = 3_000;

interface Event {
  awake: string;
  by: number;
  at: number;
}

export async function measureAwake(): Promise<Figure[]> {
  const data = await mkdtemp(join(tmpdir(), "bench-awake-"));
  await using cleanup = new AsyncDisposableStack();
  cleanup.defer(() => rm(data, { recursive: true, force: true }));
  const archive = cleanup.use(await startSampleArchive());
  archive.control.inject({ fault: { kind: "slow", ms: ARCHIVE } });
  const bindings = { AUTH_MODE: "none", RATE_LIMIT: "0", WEATHER_API_URL: archive.url, LOG_LEVEL: "error" };
  const started = await startEdge({ port: 0, data, entry: "lab/bench/workers/awake.ts", bindings });
  const edge = cleanup.use(watch(started.process));
  const client = cleanup.use(await currentClient.connect(`${started.url}/mcp`));
  const events = () => edge.logs().filter((line) => "awake" in line) as unknown as Event[];

  const figures: Figure[] = [];
  const measure = async (what: string, work: (n: number) => Promise<unknown>) => {
    const before = events().length;
    for (let n = 0; n < JOBS; n++) {
      await work(n);
      // A pause long enough to close all connections, so that each job has its full cost.
      await delay(REST);
    }
    const own = events().slice(before);
    const begun = own.filter(({ by }) => by > 0).length;
    figures.push(figure(`${what}: objects awake, together`, "s", exactly(secondsAwake(own) / JOBS)));
    figures.push(figure(`${what}: requests to objects, alarms too`, "", exactly(begun / JOBS)));
  };
  const place = (n: number) => ({ latitude: 47.61, longitude: -122.3 - n / 1_000, year: 2013, month: 5 });
  await client.callTool("weather_data", place(JOBS));
  await delay(REST);
  await measure("gathering, waited for", (n) => client.callTool("weather_data", place(n)));
  await measure("timer of a second, not waited for", (n) =>
    client.callTool("set_timer", { timer_name: `${n}`, seconds: 1 }),
  );
  return figures;
}

/** How long objects were awake, in seconds: from the start of work to its end, at least a millisecond each. */
function secondsAwake(events: readonly Event[]): number {
  const open = new Map<string, { count: number; since: number }>();
  let awake = 0;
  const move = (object: string, by: number, at: number) => {
    const { count, since } = open.get(object) ?? { count: 0, since: at };
    open.set(object, { count: count + by, since: count === 0 ? at : since });
    if (count + by === 0) awake += Math.max(1, at - since);
  };
  for (const { awake: object, by, at } of events) {
    move(object, by, at);
    // While a runner works, the Resonate object waits for it.
    if (object.startsWith("runner")) move("resonate", by, at);
  }
  return awake / 1_000;
}
