/**
 * `npm run test:all [-- OPTIONS OF VITEST]`: the tests that `npm test` leaves out. They run on the embedded server, and suites of
 * them on that server in a Durable Object, in one account, with runners, and on each standalone Resonate server on the PATH.
 * The results are in `.build/results/`, a file for each run. Exits with 1 if a test fails.
 */
import { execa } from "execa";
import { startStandaloneServer } from "./support/standalone-server.ts";

/** The programs of standalone servers, and the projects that run on them. */
const STANDALONE = { resonate: "released", "resonate-next": "next" };
/** How many test files run at a time on each standalone server: two servers run side by side. */
const FILES_AT_A_TIME = "4";

const options = process.argv.slice(2);

/** Runs projects of the tests; resolves with whether all tests passed. With `isQuiet`, their output is printed at the end. */
async function passes(name: string, projects: readonly string[], env = {}, isQuiet = false): Promise<boolean> {
  const started = Date.now();
  const results = ["--reporter=default", "--reporter=json", `--outputFile.json=.build/results/${name}.json`];
  const args = ["run", ...projects.flatMap((project) => ["--project", project]), ...results, ...options];
  const { failed, all } = await execa("vitest", args, {
    env,
    preferLocal: true,
    reject: false,
    ...(isQuiet ? { all: true } : { stdio: "inherit" }),
  });
  if (isQuiet) console.log(`\n${name}:\n${all}`);
  console.log(`${name}: ${failed ? "failed" : "passed"} after ${Math.round((Date.now() - started) / 1_000)} s`);
  return !failed;
}

/** Runs the suites of a standalone server on the program, if it is on the PATH. */
async function passesOn(program: string, project: string): Promise<boolean> {
  const { stdout: path, failed: isMissing } = await execa("which", [program], { reject: false });
  if (isMissing) {
    console.log(`There is no \`${program}\` on the PATH: no test ran on that server.`);
    return true;
  }
  await using server = await startStandaloneServer(path, undefined);
  const env = { RESONATE_URL: server.url, RESONATE_BIN: path, VITEST_MAX_WORKERS: FILES_AT_A_TIME };
  return await passes(program, [project], env, true);
}

const first = await passes("rest", ["system", "object", "account", "runner"]);
// Side by side, since each waits more than it computes.
const others = await Promise.all(Object.entries(STANDALONE).map(([program, project]) => passesOn(program, project)));
process.exitCode = [first, ...others].every(Boolean) ? 0 : 1;
