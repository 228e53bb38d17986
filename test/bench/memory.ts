import { startGate } from "../support/gate.ts";
import { until } from "../support/process.ts";
import { type Bench, inParallel, pidOf, seconds } from "./bench.ts";
import { atMost, exactly, type Figure, figure, spreadOf } from "./figures.ts";
import { ask, callTool, MODERN, mcpRequest } from "./mcp.ts";
import { floorRequestOf } from "./operations.ts";
import type { Requests } from "./requests.ts";
import { memory } from "./usage.ts";

/** As many as a Resonate server connects by default. */
const WAITING = 1_000;
const REQUESTS = 100_000;

/** The memory of an edge at rest, and with a thousand calls that wait, each for a job of its own. */
export async function measureWaiting(bench: Bench): Promise<Figure[]> {
  // Through a gate, which tells when every call waits.
  await using gate = await startGate(bench.resonate.url);
  await using edge = await bench.serve("product", { RESONATE_URL: gate.url });
  const url = `${edge.url}/mcp`;
  await ask(url, { method: "tools/list" });
  const rest = memory(pidOf(edge));

  const numbers = Array.from({ length: WAITING }, (_, n) => n);
  const names = await inParallel(numbers, 16, async (n) => {
    const name = `weather_data_47.${n + 1}1_-122.1_2013_5`;
    const args = { latitude: Number(`47.${n + 1}1`), longitude: -122.1, year: 2013, month: 5 };
    await bench.resonate.start({ id: bench.namespace + name, func: "weather_data", args, timeoutAt: inAnHour() });
    return name;
  });
  const calls = names.map((name) => callTool(url, "await_result", { job_names: [name], timeout_seconds: 300 }));
  // A call that fails while others are still being made is reported by the wait for all of them below.
  for (const call of calls) call.catch(() => {});
  await until(
    "every call to wait",
    () => new Set(gate.calls.filter(({ kind }) => READS.has(kind)).map(({ id }) => id)).size === WAITING,
    60_000,
  );
  const waiting: number[] = [];
  for (let i = 0; i < 5; i++) {
    await seconds(0.5);
    waiting.push(memory(pidOf(edge)));
  }
  await inParallel(names, 16, (name) => bench.complete(name));
  await Promise.all(calls);
  const above = spreadOf(waiting.map((mb) => mb - rest));
  return [
    figure("memory at rest", "MB", exactly(rest)),
    figure(`memory with ${WAITING} calls waiting`, "MB", spreadOf(waiting)),
    figure(`memory with ${WAITING} calls waiting, above rest`, "MB", above, atMost(100)),
    figure("open event streams for them", "", exactly(gate.streams.opened)),
  ];
}

/** The least that can take: as many requests that are each passed an event stream of the server. */
export async function measureHeldStreams(bench: Bench): Promise<Figure[]> {
  await using floor = await bench.serve("floor");
  const ended = new AbortController();
  const open = (calls: string[], hold: boolean) =>
    fetch(floor.url, { method: "POST", signal: ended.signal, ...floorRequestOf(calls, { poll: hold, hold }) });
  await (await open([], false)).text();
  const rest = memory(pidOf(floor));
  const data = { awaited: `${bench.namespace}none`, address: "poll://uni@floor/nobody" };
  const call = bench.envelope("promise.register_listener", data);
  await inParallel(Array.from({ length: WAITING }), 16, () => open([call], true));
  const held = memory(pidOf(floor));
  ended.abort();
  return [figure(`memory with ${WAITING} event streams passed through, above rest, floor`, "MB", exactly(held - rest))];
}

const READS = new Set(["promise.register_listener", "promise.get"]);
const inAnHour = () => Date.now() + 3_600_000;

/** The memory of the edge that has served the measured requests, made up to a hundred thousand. */
export async function measureServed(bench: Bench, { edge, url, answered }: Requests): Promise<Figure[]> {
  const list = { ...mcpRequest(MODERN, { method: "tools/list" }), url, connections: 16, expect: "start_gathering" };
  let requests = answered;
  while (requests < REQUESTS) requests += (await bench.generator.run({ ...list, seconds: 1 })).requests;
  return [figure(`memory after ${REQUESTS} requests`, "MB", exactly(memory(pidOf(edge))))];
}
