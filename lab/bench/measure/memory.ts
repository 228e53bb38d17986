import { startGate } from "../../../test/support/gate.ts";
import { inspectHeap } from "../../../test/support/heap.ts";
import { memory } from "../../../test/support/usage.ts";
import { freePort } from "../../../testing/stack/port.ts";
import { until } from "../../../testing/stack/program.ts";
import { atMost, exactly, type Figure, figure, spreadOf } from "../report/figures.ts";
import { type Bench, inParallel, pidOf, seconds } from "../setup/bench.ts";
import { ask, callTool, MODERN, mcpRequest } from "../setup/mcp.ts";
import { floorRequestOf } from "../setup/operations.ts";
import type { Requests } from "./requests.ts";

/** The default limit of connections of a Resonate server. */
const WAITING = 1_000;
const REQUESTS = 100_000;

/**
 * The memory of an edge at rest, and with a thousand calls that wait for different jobs: the memory of the process, most of it
 * for connections, and the JavaScript heap of the isolate, which Cloudflare limits.
 */
export async function measureWaiting(bench: Bench): Promise<Figure[]> {
  // The gate shows when a call waits.
  await using gate = await startGate(bench.resonate.url);
  const inspectorPort = await freePort();
  await using edge = await bench.serve("product", { RESONATE_URL: gate.url }, inspectorPort);
  const url = `${edge.url}/mcp`;
  const request = async () => void (await ask(url, { method: "tools/list" }));
  await request();
  using heap = await inspectHeap(inspectorPort);
  const heapInUse = async () => {
    let isKnown = false;
    const used = heap.used().finally(() => {
      isKnown = true;
    });
    // The isolate answers its inspector during the next request, so each command may need one.
    while (!isKnown) await request();
    return used;
  };
  const heapAtRest = await heapInUse();
  const rest = memory(pidOf(edge));

  const numbers = Array.from({ length: WAITING }, (_, n) => n);
  const calls: Promise<unknown>[] = [];
  const names = await inParallel(numbers, 16, async (n) => {
    const name = `weather_data_47.${n + 1}1_-122.1_2013_5`;
    const args = { latitude: Number(`47.${n + 1}1`), longitude: -122.1, year: 2013, month: 5 };
    const id = bench.namespace + name;
    await bench.resonate.start({ id, func: "weather_data", args, timeoutAt: inAnHour() });
    const call = callTool(url, "await_result", { job_names: [name], timeout_seconds: 300 });
    // The wait for all calls below reports a failure.
    call.catch(() => {});
    calls.push(call);
    await until("the call to wait", () => gate.calls.some((read) => READS.has(read.kind) && read.id === id));
    return name;
  });
  const waiting: number[] = [];
  for (let i = 0; i < 5; i++) {
    await seconds(0.5);
    waiting.push(memory(pidOf(edge)));
  }
  const heapWaiting = await heapInUse();
  await inParallel(names, 16, (name) => bench.complete(name));
  await Promise.all(calls);
  const above = spreadOf(waiting.map((mb) => mb - rest));
  return [
    figure("memory at rest", "MB", exactly(rest)),
    figure(`memory with ${WAITING} calls waiting`, "MB", spreadOf(waiting)),
    figure(`memory with ${WAITING} calls waiting, above rest`, "MB", above, atMost(100)),
    figure("JavaScript heap at rest", "MB", exactly(heapAtRest)),
    figure(`JavaScript heap with ${WAITING} calls waiting, above rest`, "MB", exactly(heapWaiting - heapAtRest)),
    figure("open event streams for them", "", exactly(gate.streams.opened)),
  ];
}

/** The floor: the same number of requests, each with a listener, an incoming and an outgoing stream. */
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
  return [figure(`memory with ${WAITING} calls waiting, above rest, floor`, "MB", exactly(held - rest))];
}

const READS = new Set(["promise.register_listener", "promise.get"]);
const inAnHour = () => Date.now() + 3_600_000;

/** The memory of the edge after a hundred thousand requests, the measured ones included. */
export async function measureServed(bench: Bench, { edge, url, answered }: Requests): Promise<Figure[]> {
  const list = { ...mcpRequest(MODERN, { method: "tools/list" }), url, connections: 16, expect: "start_gathering" };
  let requests = answered;
  while (requests < REQUESTS) requests += (await bench.generator.run({ ...list, seconds: 1 })).requests;
  return [figure(`memory after ${REQUESTS} requests`, "MB", exactly(memory(pidOf(edge))))];
}
