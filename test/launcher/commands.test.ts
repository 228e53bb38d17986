/** The command line as a user sees it: the output of each command, and the folder in which it runs. */
import { copyFile, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { execa } from "execa";
import { describe, expect, test, vi } from "vitest";
import packageJson from "../../package.json" with { type: "json" };
import { freePort } from "../../testing/stack/port.ts";
import { run, waitForAnswer } from "../../testing/stack/program.ts";
import { folder, makeProject } from "./project.ts";

// Some of these tests start whole stacks, several at once.
vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 });

const MAIN = resolve("cli/main.ts");
const COMMANDS = ["start", "dev", "worker", "resonate", "proxy", "doctor", "keys", "token", "deploy"].concat([
  "wait",
  "events",
  "jobs",
  "retry",
  "pause",
  "resume",
  "retention",
  "forget",
  "backup",
  "restore",
  "move",
]);

async function durable(args: string[], { cwd = ".", env = {} } = {}) {
  const options = { cwd, env: { RESONATE_URL: "", ...env }, all: true, reject: false } as const;
  const { exitCode, all } = await execa(process.execPath, [MAIN, ...args], options);
  return { exitCode, output: all };
}

describe.concurrent("durable-mcp-edge", () => {
  test("lists its commands and prints its version", async () => {
    const { exitCode, output } = await durable(["--help"]);
    expect(exitCode).toBe(0);
    for (const command of COMMANDS) expect(output).toMatch(new RegExp(`^  ${command} +\\w`, "m"));
    expect(await durable(["--version"])).toEqual({ exitCode: 0, output: packageJson.version });
  });

  test.each([[[]], [["serve"]], [["constructor"]]])("answers %j with the list and exit code 2", async (args) => {
    const { exitCode, output } = await durable(args);
    expect([exitCode, output]).toEqual([2, expect.stringContaining("Usage: durable-mcp-edge COMMAND")]);
  });

  test.each(COMMANDS)("%s has its own --help", async (command) => {
    const { exitCode, output } = await durable([command, "--help"]);
    expect([exitCode, output]).toEqual([0, expect.stringMatching(/^(Usage: npm (start|run)|Runs the embedded)/)]);
  });

  test("names commands as one types them in the folder: with npm if it has such scripts, otherwise with npx", async () => {
    await using project = await makeProject();
    const cwd = project.path;
    expect((await durable(["token"], { cwd })).output).toContain("npx durable-mcp-edge token NAME");
    expect((await durable(["start", "--help"], { cwd })).output).toContain(
      "Usage: npx durable-mcp-edge start [options]",
    );
    expect((await durable(["start", "--help"])).output).toContain("Usage: npm start -- [options]");
  });

  test("names the missing file in a folder that is not a project", async () => {
    await using empty = await folder();
    const { path: cwd } = empty;
    for (const [command, missing] of [
      ["start", "worker/main.ts"],
      ["worker", "worker.ts"],
      ["deploy", "wrangler.toml"],
    ]) {
      const { exitCode, output } = await durable([`${command}`], { cwd });
      expect([exitCode, output], command).toEqual([1, expect.stringContaining(`${missing}`)]);
      expect(output.split("\n"), command).toHaveLength(1);
    }
  });

  test.each(["start", "deploy"])("%s refuses a project without the objects of its callers", async (command) => {
    await using project = await makeProject();
    const { path: cwd } = project;
    const configuration = { name: "my-server", main: "edge.ts", compatibility_date: "2026-11-17" };
    await writeFile(join(cwd, "wrangler.jsonc"), JSON.stringify(configuration));
    const args = command === "start" ? ["start", "--memory"] : ["deploy", "--dry-run"];
    const { exitCode, output } = await durable(args, { cwd });
    expect([exitCode, output]).toEqual([1, expect.stringContaining("binds no CALLER")]);
  });
});

describe.concurrent("its parts", () => {
  test("npm run start:worker runs the folder's worker, start:resonate the embedded server", async () => {
    const [port, resonatePort] = [await freePort(), await freePort()];
    await using resonate = run(MAIN, { args: ["resonate", "--memory", "--port", `${resonatePort}`] });
    await waitForAnswer(`http://127.0.0.1:${resonatePort}/ready`, resonate);
    const env = { RESONATE_URL: `http://127.0.0.1:${resonatePort}`, HEALTH_PORT: `${port}` };
    await using worker = run(MAIN, { args: ["worker"], env });
    await waitForAnswer(`http://127.0.0.1:${port}/health`, worker);
    worker.signal("SIGTERM");
    resonate.signal("SIGTERM");
    expect([await worker.exited, await resonate.exited]).toMatchObject([{ exitCode: 0 }, { exitCode: 0 }]);
    expect(packageJson.scripts).toMatchObject({
      "start:worker": "node cli/main.ts worker",
      "start:resonate": "node cli/main.ts resonate",
    });
  });

  test("deploy bundles the folder's edge with wrangler and passes options on to it", async () => {
    await using project = await makeProject();
    await copyFile(join(project.path, "edge.ts"), join(project.path, "other.ts"));
    const env = { WRANGLER_SEND_METRICS: "false", WRANGLER_WRITE_LOGS: "false" };
    const { exitCode, output } = await durable(["deploy", "other.ts", "--dry-run"], { cwd: project.path, env });
    expect([exitCode, output]).toEqual([0, expect.stringContaining("--dry-run: exiting now")]);
    expect((await durable(["deploy", "--dry-run", "none.ts"], { cwd: project.path, env })).exitCode).not.toBe(0);
  });
});
