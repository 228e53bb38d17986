import type { Search } from "./host-table.ts";
import type { Call, Heard, Reply } from "./model/dialogue.ts";

/** What the scripted model does in a conversation: calls of the server's own tools, one list a turn. */
export interface Scenario {
  name: string;
  prompt: string;
  /** The calls of each turn, from the results before it. */
  turns: readonly ((results: readonly string[]) => { tool: string; args: object }[])[];
  /** What the last result says where the host brings all of it. */
  expects: RegExp;
}

const LONG = { latitude: 47.6, longitude: -122.3, from: "2012-01" };

/** The scenarios, with jobs of a run's own. @param seconds how long its timer takes */
export function scenariosOf(run: string, seconds: number): Scenario[] {
  const collect = (...names: string[]) => ({ tool: "await_result", args: { job_names: names } });
  const two = [`${run}-a`, `${run}-b`];
  const turns = Array.from({ length: Math.ceil(seconds / 40) }, () => () => [collect(`timer_${run}`)]);
  return [
    {
      name: "start, wait, collect",
      prompt: "Set a timer, wait for it, and tell me when it fired.",
      turns: [() => [{ tool: "set_timer", args: { timer_name: run, seconds } }], ...turns],
      expects: /complete|fired/,
    },
    {
      name: "parallel calls",
      prompt: "Set two timers and wait for both.",
      turns: [
        () => two.map((timer_name) => ({ tool: "timer", args: { timer_name, seconds: 3 } })),
        () => [collect(...two.map((name) => `timer_${name}`))],
      ],
      expects: /complete/,
    },
    {
      name: "large result",
      prompt: "Gather two years of weather.",
      turns: [
        () => [{ tool: "weather_range", args: { ...LONG, to: "2013-12" } }],
        (results) => [collect(jobIn(results))],
        (results) => [{ tool: "probe_status", args: { job_names: [jobIn(results)], result: "full" } }],
      ],
      expects: /next_offset|temperature/,
    },
    {
      name: "question",
      prompt: "Gather three years of weather.",
      turns: [() => [{ tool: "weather_range", args: { ...LONG, to: "2014-12" } }]],
      expects: /waiting_for|confirm|declined|nobody/,
    },
    {
      name: "cancel",
      prompt: "Set a timer and cancel it.",
      turns: [
        () => [{ tool: "set_timer", args: { timer_name: `${run}-c`, seconds: 600 } }],
        () => [{ tool: "cancel_job", args: { job_names: [`timer_${run}-c`] } }],
      ],
      expects: /cancel/,
    },
  ];
}

function jobIn(results: readonly string[]): string {
  const [, name] = /job_name[\\"]+:\s*[\\"]+([^"\\]+)/.exec(results.join("\n")) ?? [];
  if (name === undefined) throw new Error("no result names a job");
  return name;
}

/** The model's side of a scenario: tools that the host defers are searched for first. */
export function scriptOf({ turns }: Pick<Scenario, "turns">, search?: Search) {
  let turn = 0;
  let searches = 0;
  let skipped = 0;
  return ({ tools, results }: Heard): Reply => {
    const next = turns[turn]?.(results.slice(skipped));
    if (!next) return { text: `Done: ${results.at(-1)?.slice(0, 200)}` };
    const calls: Call[] = [];
    for (const { tool, args } of next) {
      const call = offered(tool, args, tools) ?? found(tool, args, results, search);
      if (call) calls.push(call);
      else {
        if (!search || !tools.includes(search.tool)) throw new Error(`no tool ${tool} among ${tools.join(", ")}`);
        if (++searches > 4) throw new Error(`searches do not find ${tool}`);
        skipped = results.length + 1;
        return { calls: [{ tool: search.tool, args: search.args(tool) }] };
      }
    }
    turn += 1;
    return { calls };
  };
}

/** The call of a tool that the model is offered, under the host's name for it. */
function offered(tool: string, args: object, tools: readonly string[]): Call | undefined {
  const name = tools.find((each) => each.endsWith(tool) && !/[a-z]/i.test(each.at(-tool.length - 1) ?? "_"));
  return name === undefined ? undefined : { tool: name, args };
}

/** The call, through the host's own tool, of one that a search has found. */
function found(tool: string, args: object, results: readonly string[], search?: Search): Call | undefined {
  const [, name] = new RegExp(`"name": ?"([\\w-]+__${tool})"`).exec(results.join("\n")) ?? [];
  return search?.through && name ? { tool: search.through.tool, args: search.through.args(name, args) } : undefined;
}
