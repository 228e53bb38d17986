/**
 * `npm run servers [-- PROGRAM…]`: the end-to-end, task, worker, key, contract and differential tests, whole, on every kind of
 * Resonate server: the embedded one as a Durable Object, and each PROGRAM (default: `resonate` and `resonate-next`, those that
 * the PATH has). Some minutes each. Ends with 1 when a test fails.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { execa } from "execa";
import { startRealServer } from "../upgrade/generation.ts";

const SUITES = ["e2e", "tasks", "worker", "contract", "server/differential", "server/real-differential", "cli/keys"];
const ARGS = ["--project", "system", ...SUITES.map((name) => `test/${name}`)];

/** Runs the suites with these variables; whether all passed. */
async function passes(name: string, env: Record<string, string>): Promise<boolean> {
  console.log(`\n${name}:`);
  const args = ["vitest", "run", ...ARGS, "--reporter=dot"];
  return !(await execa("npx", args, { env, stdio: "inherit", reject: false })).failed;
}

const { positionals } = parseArgs({ allowPositionals: true });
const programs = positionals.length > 0 ? positionals : ["resonate", "resonate-next"];
const failed: string[] = [];
if (!(await passes("the embedded server as a Durable Object", { RESONATE_HOST: "object" }))) failed.push("object");
for (const program of programs) {
  const { failed: isMissing } = await execa(program, ["--version"], { reject: false });
  if (isMissing) {
    console.log(`\n${program} is not on the PATH: nothing ran on it.`);
    continue;
  }
  const data = await mkdtemp(join(tmpdir(), "servers-"));
  await using server = await startRealServer(program, data);
  if (!(await passes(program, { RESONATE_URL: server.url, RESONATE_BIN: program }))) failed.push(program);
  await rm(data, { recursive: true, force: true });
}
console.log(failed.length === 0 ? "\nAll passed." : `\nFailed on: ${failed.join(", ")}.`);
process.exitCode = failed.length === 0 ? 0 : 1;
