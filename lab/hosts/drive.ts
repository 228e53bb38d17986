import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Server } from "../../core/tools/index.ts";
import { until } from "../../testing/stack/program.ts";
import { type Home, makeHome } from "./home.ts";
import type { Host } from "./host-table.ts";
import type { ModelEndpoint } from "./model/endpoint.ts";
import { type Scenario, scriptOf } from "./scenarios.ts";
import type { Wire } from "./wire.ts";

interface Surroundings {
  /** The host's command. */
  command: string;
  /** The server, by the way in which callers authenticate. */
  servers: Record<"none" | "token" | "OAuth", Server>;
  /** The recorder in front of the server without authentication. */
  wire: Wire;
  model: ModelEndpoint;
  /** How long the host may take for one conversation, in milliseconds. */
  patience: number;
  killWorker(): Promise<void>;
  /** The folder for the records of conversations. */
  record: string | undefined;
}

/** Runs the scenarios with a host; returns a cell of the table for each. */
export async function drive(host: Host, around: Surroundings, scenarios: readonly Scenario[]): Promise<string[]> {
  const { command, servers, wire, model, patience, record } = around;
  const cells: string[] = [];
  for (const way of ["none", "token", "OAuth"] as const) {
    const own = scenarios.filter((each) => (each.way ?? "none") === way);
    if (own.length === 0) continue;
    if (way === "OAuth" && !host.login) {
      cells.push("in its chat alone");
      continue;
    }
    await using home = await makeHome(host, command, { server: servers[way], model: model.origin, patience });
    const signed = way === "OAuth" ? await home.run(host.login ?? [], "in a terminal").ended : undefined;
    for (const scenario of own) {
      if (scenario.task && !host.inTerminal) {
        cells.push("no tasks");
        continue;
      }
      wire.clear(scenario.marked);
      const { printed, timedOut } = await converse(host, home, around, scenario);
      cells.push(cellOf(scenario, model, timedOut));
      console.error(`${host.name}, ${scenario.name}: ${cells.at(-1)}`);
      if (record === undefined) continue;
      await mkdir(record, { recursive: true });
      const all = { signed, printed, heard: model.heard, wire: wire.exchanges };
      const file = `${host.id}-${scenario.name}`.replaceAll(/\W+/g, "-");
      await writeFile(join(record, `${file}.json`), JSON.stringify(all, undefined, 2));
    }
  }
  return cells;
}

async function converse(host: Host, home: Home, around: Surroundings, scenario: Scenario) {
  const { model, wire, killWorker, patience } = around;
  const inTerminal = scenario.task ? host.inTerminal : undefined;
  const begins = inTerminal?.(scenario.prompt) ?? host.run(scenario.prompt, model.origin);
  model.follow(scriptOf(scenario.turns, host.search));
  const run = home.run(begins, inTerminal && "in a terminal");
  if (!scenario.resumed) return run.ended;
  const waits = () => wire.exchanges.some(({ method, tool }) => tool === "await_result" || method === "tasks/get");
  await Promise.race([run.ended, until("the host to wait for its job", waits, 120_000)]);
  run.kill();
  await Promise.all([run.ended, killWorker()]);
  const listed = host.conversations && (await home.run(host.conversations).ended).printed;
  const last = listed === undefined ? "last" : (/"(?:id|sessionId)": ?"([^"]+)"/.exec(listed)?.[1] ?? "last");
  model.follow(scriptOf(scenario.resumed, host.search));
  const stays = inTerminal ?? host.conversations;
  const goesOn = inTerminal?.() ?? host.run("And now?", model.origin, last);
  const resumed = home.run(goesOn, stays && "in a terminal");
  if (stays) {
    // In a terminal the host goes on after its model's last message, and some hosts wait for input.
    const said = async () => {
      if (!inTerminal && model.heard.length === 0) await resumed.type("And now?");
      await sleep(5_000);
      return model.isDone;
    };
    await Promise.race([resumed.ended, until("the model's last words", said, patience)]);
    resumed.kill();
  }
  return resumed.ended;
}

/** The number of turns of a conversation, the size of its model's requests, and the result that the model was told. */
function cellOf({ tells }: Scenario, { heard }: ModelEndpoint, timedOut: boolean): string {
  const results = heard.at(-1)?.results ?? [];
  const told = results.at(-1) ?? "nothing";
  const bytes = heard.reduce((sum, turn) => sum + turn.bytes, 0);
  const figures = `${heard.length} turns, ${Math.round(bytes / 1_000)} KB`;
  const words = tells(told, results);
  if (!timedOut && words !== undefined) return `${figures}: ${words}`;
  const last = told.replaceAll(/[\s|`]+/g, " ").slice(0, 160);
  return `${figures}; **${timedOut ? "cut off" : "not as meant"}**, told: ${last}`;
}
