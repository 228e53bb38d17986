/**
 * `npm run linearizable`: records short histories of a Resonate server with concurrent clients, crashes and a moved clock, and
 * runs the checker (Go, `checker/`), which decides whether each history is linearizable.
 *
 *   npm run linearizable -- [--host embedded|object] [--resonate URL|PROGRAM]  default: both hosts of the project
 *     [--histories 1000] [--clients 8] [--requests 10] [--seed N]
 *     [--exact]     the clock moves only while no request is under way
 *     [--keep DIR]  keeps the recorded histories there
 *
 * Exits with 0 if all are linearizable. Otherwise it prints the smallest history that is not, as a table.
 */
import { spawnSync } from "node:child_process";
import { randomInt } from "node:crypto";
import { createWriteStream, mkdirSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { finished } from "node:stream/promises";
import { parseArgs } from "node:util";
import { type Plan, record } from "./record.ts";
import { givenServer, isHostName, type Subject, startHost, startRelease } from "./subject.ts";

const { values } = parseArgs({
  options: {
    host: { type: "string" },
    resonate: { type: "string" },
    histories: { type: "string", default: "1000" },
    clients: { type: "string", default: "8" },
    requests: { type: "string", default: "10" },
    seed: { type: "string" },
    exact: { type: "boolean", default: false },
    keep: { type: "string" },
  },
});

const plan: Plan = {
  histories: Number(values.histories),
  clients: Number(values.clients),
  requests: Number(values.requests),
  seed: Number(values.seed ?? randomInt(2 ** 31)),
  isExact: values.exact,
};
const folder = values.keep ?? mkdtempSync(join(tmpdir(), "histories-"));
mkdirSync(folder, { recursive: true });

let isLinearizable = true;
for (const [name, start] of subjects()) {
  const file = resolve(folder, `${name}.ndjson`);
  const began = performance.now();
  await recordTo(file, await start());
  console.log(`${name}: ${plan.histories} histories, seed ${plan.seed}, in ${seconds(began)}: ${file}`);
  const rules = values.resonate === undefined ? [] : ["-real"];
  const { status } = spawnSync("go", ["run", ".", ...rules, file], {
    cwd: join(import.meta.dirname, "checker"),
    stdio: "inherit",
  });
  isLinearizable &&= status === 0;
}
process.exit(isLinearizable ? 0 : 1);

function subjects(): [string, () => Promise<Subject>][] {
  const { resonate, host } = values;
  if (resonate !== undefined)
    return [["given", async () => (URL.canParse(resonate) ? givenServer(resonate) : startRelease(resonate))]];
  const names = host === undefined ? ["embedded", "object"] : [host];
  return names.map((name) => {
    if (!isHostName(name)) throw new Error("--host takes embedded or object.");
    return [name, () => startHost(name)];
  });
}

async function recordTo(file: string, started: Subject): Promise<void> {
  await using subject = started;
  const out = createWriteStream(file);
  await record(subject, plan, (entry) => out.write(`${JSON.stringify(entry)}\n`));
  out.end();
  await finished(out);
}

function seconds(since: number): string {
  return `${((performance.now() - since) / 1000).toFixed(1)} s`;
}
