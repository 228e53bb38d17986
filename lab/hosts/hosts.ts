/**
 * `npm run hosts [-- NAME…]`: installs each host from npm outside the checkout, sets the server up in it by the line that
 * `--config HOST` prints, runs it without a person against a scripted model on loopback, and prints the table of
 * docs/clients.md. `--quick`: with a timer of 5 s instead of 90. `--cache DIR`: where the hosts are installed.
 * `--record DIR`: keeps what each host printed and what its model was told.
 */
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { execa } from "execa";
import { markdownTable } from "markdown-table";
import { hostSetups } from "../../functions/pages/hosts.ts";
import { startStack } from "../../test/support/stack.ts";
import { type Host, writeFiles } from "./host-table.ts";
import { chosenHosts, install } from "./install.ts";
import { startModel } from "./model/endpoint.ts";
import { type Scenario, scenariosOf, scriptOf } from "./scenarios.ts";
import { startWire } from "./wire.ts";

const options = { quick: { type: "boolean" }, cache: { type: "string" }, record: { type: "string" } } as const;
const { values, positionals } = parseArgs({ allowPositionals: true, options });
const cache = values.cache ?? join(tmpdir(), "hosts-cache");
const seconds = values.quick ? 5 : 90;
/** How long a host may take for one scenario, in milliseconds. */
const PATIENCE = (seconds + 90) * 1_000;

await using stack = await startStack({ bindings: { WAIT_SECONDS: "4" } });
await using wire = await startWire(stack.origin);
await using model = await startModel();
const rows: string[][] = [];
for (const host of chosenHosts(positionals)) rows.push(await drive(host));
const heads = scenariosOf("", seconds).map(({ name }) => name);
console.log(markdownTable([["host", ...heads], ...rows]));

/** A host's row, with a cell for each scenario. */
async function drive(host: Host): Promise<string[]> {
  const command = await install(host, cache);
  const home = await mkdtemp(join(tmpdir(), "host-"));
  await using cleanup = new AsyncDisposableStack();
  cleanup.defer(() => rm(home, { recursive: true, force: true, maxRetries: 5 }));
  await writeFiles(host, home, model.origin);
  const cwd = join(home, "project");
  await mkdir(cwd);
  const env = { PATH: process.env.PATH, HOME: home, TERM: "dumb", CI: "1", ...host.env?.(model.origin) };
  const start = (args: string[]) =>
    execa(command, args, { cwd, env, extendEnv: false, timeout: PATIENCE, reject: false, all: true, stdin: "ignore" });
  const setUp = hostSetups({ name: "durable-mcp-edge", url: wire.url }).find(({ id }) => id === host.id);
  const { failed, all } = await start((setUp?.paste ?? "").split(" ").slice(1));
  if (host.prepare) await start(host.prepare(model.origin));
  console.error(`${host.name}: ${setUp?.paste}${failed ? `\n${all}` : ""}`);
  const row = [`${host.name} ${host.version}`];
  const run = Math.floor(Math.random() * 36 ** 5).toString(36);
  for (const scenario of scenariosOf(`${host.id}-${run}`, seconds)) {
    wire.clear();
    model.follow(scriptOf(scenario, host.search));
    const { all, timedOut } = await start(host.run(scenario.prompt, model.origin));
    row.push(cellOf(scenario, timedOut));
    console.error(`  ${scenario.name}: ${row.at(-1)}`);
    if (values.record !== undefined) await record(values.record, `${host.id}-${scenario.name}`, all);
  }
  return row;
}

/** How many turns a conversation took and what its model was charged; where it went wrong, what the model was told last. */
function cellOf({ expects }: Scenario, timedOut: boolean): string {
  const { heard } = model;
  const told = heard.at(-1)?.results.at(-1) ?? "nothing";
  const bytes = heard.reduce((sum, turn) => sum + turn.bytes, 0);
  const figures = `${heard.length} turns, ${Math.round(bytes / 1_000)} KB`;
  if (!timedOut && expects.test(told)) return figures;
  const words = told.replaceAll(/[\s|`]+/g, " ").slice(0, 160);
  return `${figures}; **${timedOut ? "cut off" : "not as meant"}**, told: ${words}`;
}

async function record(folder: string, name: string, printed: string | undefined): Promise<void> {
  await mkdir(folder, { recursive: true });
  const all = { printed, heard: model.heard, wire: wire.exchanges };
  await writeFile(join(folder, `${name.replaceAll(/\W+/g, "-")}.json`), JSON.stringify(all, undefined, 2));
}
