/** The measured requests, each with the calls to Resonate that it causes. */
import type { Bench } from "./bench.ts";
import { ask, callTool, LEGACY, type Message, MODERN, mcpRequest, type Revision, toolCall } from "./mcp.ts";

export interface Operation {
  name: string;
  /** Its strings may contain `{n}`, `{a}` and `{b}`: see `numbered` in `mcp.ts`. */
  message: Message;
  /** A text that every answer contains. */
  expect: string;
  /** Its calls to Resonate, with the same placeholders. */
  calls: string[];
  revisions: readonly Revision[];
  /** The factor by which it runs longer than others, on `connections`, so that most requests end within a run. */
  length?: number;
  connections?: number;
  /** Whether it belongs to the short form. */
  short?: boolean;
  /** The target share of the floor's throughput, by revision. */
  targets?: Partial<Record<Revision, number>>;
}

const BOTH = [MODERN, LEGACY] as const;
const YEAR = 365 * 24 * 60 * 60;

type Place = Record<"latitude" | "longitude", number | string>;

/** Coordinates with placeholders; {@link requestOf} turns these strings into numbers. */
const PLACE: Place = { latitude: "{b}", longitude: "-{a}" };

const month = (place: Place) => ({ ...place, year: 2013, month: 5 });
const monthName = ({ latitude, longitude }: Place) => `weather_data_${latitude}_${longitude}_2013_5`;

/** Starts the jobs that the operations need through the edge at `url`, and describes the operations. */
export async function describeOperations(bench: Bench, url: string): Promise<Operation[]> {
  const existing = Array.from({ length: 50 }, (_, i) => ({
    latitude: Number(`47.${1_001 + 2 * i}`),
    longitude: -122.3,
  }));
  for (const place of existing) await callTool(url, "start_gathering", month(place));
  const [first] = existing;
  if (!first) throw new Error("no job is there");
  const task = await ask(url, { ...toolCall("weather_data", month(first)), tasks: true });
  return [
    ...startOperations(bench, first),
    ...readOperations(bench, existing.map(monthName), task.taskId),
    ...DESCRIPTIONS,
  ];
}

/** The operations that start jobs; there is one at the place `existing`. */
function startOperations(bench: Bench, existing: Place): Operation[] {
  const create = (place: Place) =>
    bench.creation(monthName(place), "weather_data", { ...month(place), latitude: 47.1234, longitude: -1.2345 });
  const timer = { timer_name: "bench {n}", fires_at: new Date(Date.now() + YEAR * 1_000).toISOString() };
  return [
    {
      name: "start_gathering, new job",
      message: toolCall("start_gathering", month(PLACE)),
      expect: "running",
      calls: [create(PLACE)],
      revisions: BOTH,
      short: true,
      targets: { [MODERN]: 0.5, [LEGACY]: 0.35 },
    },
    {
      name: "start_gathering, existing job",
      message: toolCall("start_gathering", month(existing)),
      expect: "running",
      calls: [create(existing)],
      revisions: BOTH,
      targets: { [MODERN]: 0.5, [LEGACY]: 0.35 },
    },
    {
      name: "set_timer",
      message: toolCall("set_timer", { timer_name: timer.timer_name, seconds: YEAR }),
      expect: "running",
      calls: [bench.creation(`timer_${timer.timer_name}`, "timer", timer)],
      revisions: BOTH,
    },
  ];
}

/** The operations that look at running jobs; the task `taskId` is the first of them. */
function readOperations(bench: Bench, names: string[], taskId: string): Operation[] {
  const read = (name: string) => bench.envelope("promise.get", { id: bench.namespace + name });
  return [
    {
      name: "probe_status, 1 job",
      message: toolCall("probe_status", { job_names: names.slice(0, 1) }),
      expect: "running",
      calls: names.slice(0, 1).map(read),
      revisions: BOTH,
    },
    {
      name: "probe_status, 50 jobs",
      message: toolCall("probe_status", { job_names: names }),
      expect: "running",
      calls: names.map(read),
      revisions: BOTH,
      short: true,
      length: 2,
      connections: 4,
      targets: { [MODERN]: 0.6, [LEGACY]: 0.6 },
    },
    {
      name: "tasks/get",
      message: { method: "tasks/get", params: { taskId }, tasks: true },
      expect: "working",
      calls: names.slice(0, 1).map(read),
      revisions: [MODERN],
      short: true,
      targets: { [MODERN]: 0.5 },
    },
  ];
}

/** The operations that describe the server, without a call to Resonate. */
const DESCRIPTIONS: readonly Operation[] = [
  {
    name: "tools/list",
    message: { method: "tools/list" },
    expect: "start_gathering",
    calls: [],
    revisions: BOTH,
    short: true,
  },
  {
    name: "server/discover",
    message: { method: "server/discover" },
    expect: "supportedVersions",
    calls: [],
    revisions: [MODERN],
    short: true,
  },
];

export function requestOf({ message }: Operation, revision: Revision) {
  const { headers, body } = mcpRequest(revision, message);
  return { headers, body: body.replace(/"(latitude|longitude)":"([^"]+)"/g, '"$1":$2') };
}

export interface FloorOptions {
  /** The size of the answer in bytes. */
  bytes?: number;
  /** Whether an event stream is opened first. */
  poll?: boolean;
  /** Whether the stream stays open as the answer. */
  hold?: boolean;
}

/** A request to the floor that causes the same calls as an operation. */
export function floorRequestOf(calls: string[], { bytes = 0, poll = false, hold = false }: FloorOptions) {
  const headers = {
    "content-type": "application/json",
    "x-calls": String(calls.length),
    "x-answer-bytes": String(bytes),
    ...(poll && { "x-poll": "1" }),
    ...(hold && { "x-hold": "1" }),
  };
  return { headers, body: calls.join("\n") };
}
