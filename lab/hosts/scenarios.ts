import type { Search } from "./host-table.ts";
import type { Call, Heard, Reply } from "./model/dialogue.ts";
import { TEXT } from "./wire.ts";

/** The calls of each turn, by the server's names of its tools, made from the results so far. An empty list ends the conversation. */
type Turns = readonly ((results: readonly string[]) => { tool: string; args: object }[])[];

/** The behavior of the scripted model in a conversation. */
export interface Scenario {
  name: string;
  prompt: string;
  turns: Turns;
  /** The part of the last result, or of all results, for the table; undefined if the results are not as expected. */
  tells(told: string, results: readonly string[]): string | undefined;
  /** The turns after host and worker were killed during the last call of the first turns, in the same conversation. */
  resumed?: Turns;
  /** Whether texts that repeat structured content are replaced by a mark. */
  marked?: boolean;
  /** How the host authenticates. */
  way?: "token" | "OAuth";
  /** Whether the call is made in a terminal, as a task, whose end the resumed host reports to its model by itself. */
  task?: boolean;
}

const LONG = { latitude: 47.6, longitude: -122.3, from: "2012-01" };

const collect = (...names: string[]) => ({ tool: "await_result", args: { job_names: names } });

const timer = (name: string, seconds: number) => ({ tool: "set_timer", args: { timer_name: name, seconds } });

/** Sets a timer of three seconds, and collects its result. */
const shortTimer = (name: string): Turns => [() => [timer(name, 3)], () => [collect(`timer_${name}`)]];

const says = (words: RegExp) => (told: string) => words.exec(told)?.[0];

/** The scenarios, with jobs whose names are unique to the run. @param seconds how long the long timer takes */
export function scenariosOf(run: string, seconds: number): Scenario[] {
  return [
    longTimer(run, seconds),
    parallelCalls(run),
    ...LARGE_RESULTS,
    QUESTION,
    ...endScenarios(run),
    resultForms(run),
    { name: "token", prompt: "Set a timer.", turns: shortTimer(`${run}-t`), tells: says(/complete/), way: "token" },
    { name: "OAuth", prompt: "Set a timer.", turns: shortTimer(`${run}-o`), tells: says(/complete/), way: "OAuth" },
  ];
}

function longTimer(run: string, seconds: number): Scenario {
  const waits = Array.from({ length: Math.ceil(seconds / 40) }, () => () => [collect(`timer_${run}`)]);
  return {
    name: `start, wait ${seconds} s, collect`,
    prompt: "Set a timer, wait for it, and tell me when it fired.",
    turns: [() => [timer(run, seconds)], ...waits],
    tells: says(/complete/),
  };
}

function parallelCalls(run: string): Scenario {
  const timerNames = [`${run}-a`, `${run}-b`];
  return {
    name: "parallel calls",
    prompt: "Set two timers and wait for both.",
    turns: [() => timerNames.map((timer_name) => ({ tool: "timer", args: { timer_name, seconds: 3 } }))],
    tells(_told, results) {
      const starts = results
        .slice(-2)
        .map((result) => Date.parse(/started_at[\\"]+: ?[\\"]+([^"\\]+)/.exec(result)?.[1] ?? ""));
      const apart = Math.abs((starts[0] ?? Number.NaN) - (starts[1] ?? Number.NaN));
      return Number.isNaN(apart) ? undefined : apart < 2_000 ? "side by side" : "one after the other";
    },
  };
}

const LARGE_RESULTS: readonly Scenario[] = [
  {
    name: "large result",
    prompt: "Gather two years of weather.",
    turns: [
      () => [{ tool: "weather_range", args: { ...LONG, to: "2013-12" } }],
      (results) => [collect(jobIn(results))],
      (results) => [{ tool: "probe_status", args: { job_names: [jobIn(results)], result: "full" } }],
    ],
    tells: (told) => (/next_offset/.test(told) ? `${told.length.toLocaleString("en")} characters` : undefined),
  },
  {
    name: "large result in parts of 5,000",
    prompt: "Read two years of weather.",
    turns: [
      () => [{ tool: "weather_range", args: { ...LONG, to: "2013-12" } }],
      (results) => [partOf(jobIn(results), 0)],
      ...Array.from({ length: 9 }, () => (results: readonly string[]) => {
        const { next } = readIn(results);
        return next === undefined ? [] : [partOf(jobIn(results), next)];
      }),
    ],
    tells(_told, results) {
      const { text, next } = readIn(results);
      const isWhole = next === undefined && text.startsWith("{") && JSON.parse(text).months.length === 24;
      return isWhole ? `all ${text.length.toLocaleString("en")} characters` : undefined;
    },
  },
];

const QUESTION: Scenario = {
  name: "question",
  prompt: "Gather three years of weather.",
  turns: [() => [{ tool: "weather_range", args: { ...LONG, to: "2014-12" } }]],
  tells: says(/declined|waiting_for|confirm|nobody/),
};

/** Jobs that are cancelled, and jobs that end after host and worker were killed. */
const endScenarios = (run: string): Scenario[] => [
  {
    name: "cancel",
    prompt: "Set a timer and cancel it.",
    turns: [() => [timer(`${run}-c`, 600)], () => [{ tool: "cancel_job", args: { job_names: [`timer_${run}-c`] } }]],
    tells: says(/cancelled|requires approval/),
  },
  {
    name: "killed, resumed",
    prompt: "Set a timer and wait for it.",
    turns: [() => [timer(`${run}-k`, 20)], () => [collect(`timer_${run}-k`)]],
    resumed: [() => [collect(`timer_${run}-k`)]],
    tells: says(/complete/),
  },
  {
    name: "task, killed, resumed",
    prompt: "Set a timer.",
    turns: [() => [{ tool: "timer", args: { timer_name: `${run}-task`, seconds: 30 } }]],
    resumed: [],
    task: true,
    tells: says(/completed/),
  },
];

/** The form in which the model gets a result. */
const resultForms = (run: string): Scenario => ({
  name: "model gets",
  prompt: "Set a timer.",
  turns: [() => [timer(`${run}-m`, 3)]],
  marked: true,
  tells(told) {
    const [text, structured] = [told.includes(TEXT), told.includes("fires_at")];
    return text ? (structured ? "both" : "the text") : structured ? "structured content" : undefined;
  },
});

function jobIn(results: readonly string[]): string {
  const [, name] = /job_name[\\"]+:\s*[\\"]+([^"\\]+)/.exec(results.join("\n")) ?? [];
  if (name === undefined) throw new Error("no result names a job");
  return name;
}

const partOf = (name: string, offset: number) => {
  return { tool: "probe_status", args: { job_names: [name], result: "full", limit: 5_000, offset } };
};

/** The joined parts of a result, from the last first part on, and the offset at which it goes on. */
function readIn(results: readonly string[]): { text: string; next: number | undefined } {
  let read = { text: "", next: undefined as number | undefined };
  for (const result of results) {
    const [, offset, part = ""] = /"offset": ?(\d+),\s*"part": ?"((?:[^"\\]|\\.)*)"/.exec(result) ?? [];
    if (offset === undefined) continue;
    const [, next] = /"next_offset": ?(\d+)/.exec(result) ?? [];
    const before = read.text.slice(0, Number(offset));
    read = { text: before + JSON.parse(`"${part}"`), next: next === undefined ? undefined : Number(next) };
  }
  return read;
}

/** The model's side of a scenario. It first searches for tools that the host defers. */
export function scriptOf(turns: Turns, search?: Search) {
  let turn = 0;
  let searches = 0;
  return ({ tools, results }: Heard): Reply => {
    const next = turns[turn]?.(results);
    if (!next?.length) return { text: `Done: ${results.at(-1)?.slice(0, 200)}` };
    const calls: Call[] = [];
    for (const { tool, args } of next) {
      const call = offered(tool, args, tools) ?? found(tool, args, results, search);
      if (call) calls.push(call);
      else {
        if (!search || !tools.includes(search.tool)) throw new Error(`no tool ${tool} among ${tools.join(", ")}`);
        if (++searches > 4) throw new Error(`searches do not find ${tool}`);
        return { calls: [{ tool: search.tool, args: search.args(tool) }] };
      }
    }
    turn += 1;
    return { calls };
  };
}

/** The call of a tool that the host offers to the model, under the host's name for the tool. */
function offered(tool: string, args: object, tools: readonly string[]): Call | undefined {
  // Another tool's name may have the same ending. In front of this tool's name there is the server's name, or nothing.
  const name = tools.find(
    (each) => each.endsWith(tool) && /(?:^|durable.mcp.edge)[^a-z]*$/i.test(each.slice(0, -tool.length)),
  );
  return name === undefined ? undefined : { tool: name, args };
}

/** The call, through the host's own tool, of a tool that a search has found. */
function found(tool: string, args: object, results: readonly string[], search?: Search): Call | undefined {
  const [, name] = new RegExp(`"name": ?"([\\w-]+__${tool})"`).exec(results.join("\n")) ?? [];
  return search?.through && name ? { tool: search.through.tool, args: search.through.args(name, args) } : undefined;
}
