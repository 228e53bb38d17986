/**
 * `npm run servers [-- SERVER…]`: runs all end-to-end, task, worker, SDK, operator, key, contract and differential tests on every
 * kind of Resonate server: the embedded one as a Durable Object (`object`), and programs on the PATH (default: `resonate` and
 * `resonate-next`). Takes some minutes for each. Exits with 1 if a test fails.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { execa } from "execa";
import { startStandaloneServer } from "../../test/support/standalone-server.ts";

const SUITES = [
  ...["e2e", "tasks", "worker", "sdks", "operate", "contract", "server/differential", "server/standalone-differential"],
  ...["cli/keys", "cli/operate"],
];
const ARGS = ["--project", "core", "--project", "system", ...SUITES.map((name) => `test/${name}`)];

/** Runs the suites with these variables; resolves with whether all tests passed. */
async function passes(name: string, env: Record<string, string>): Promise<boolean> {
  console.log(`\n${name}:`);
  const args = ["vitest", "run", ...ARGS, "--reporter=dot"];
  return !(await execa("npx", args, { env, stdio: "inherit", reject: false })).failed;
}

const { positionals } = parseArgs({ allowPositionals: true });
const servers = positionals.length > 0 ? positionals : ["object", "resonate", "resonate-next"];
const failed: string[] = [];
for (const program of servers) {
  if (program === "object") {
    if (!(await passes("the embedded server as a Durable Object", { RESONATE_HOST: "object" }))) failed.push(program);
    continue;
  }
  // Tests start the program with their own environment, which has no PATH.
  const { stdout: path, failed: isMissing } = await execa("which", [program], { reject: false });
  if (isMissing) {
    console.log(`\n${program} is not on the PATH: nothing ran on it.`);
    continue;
  }
  const data = await mkdtemp(join(tmpdir(), "servers-"));
  await using server = await startStandaloneServer(path, data);
  if (!(await passes(program, { RESONATE_URL: server.url, RESONATE_BIN: path }))) failed.push(program);
  await rm(data, { recursive: true, force: true });
}
console.log(failed.length === 0 ? "\nAll passed." : `\nFailed on: ${failed.join(", ")}.`);
process.exitCode = failed.length === 0 ? 0 : 1;
