// The deploy command, by the project's own wrangler, against a fake of the platform's API: what would be there is looked at.

import { createHash } from "node:crypto";
import { execa } from "execa";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Platform, startPlatform } from "./platform.ts";

let platform: Platform;
beforeAll(async () => {
  platform = await startPlatform();
});
afterAll(() => platform[Symbol.asyncDispose]());

const deploy = async (...args: string[]) => {
  const all = ["infra/commands/main.ts", "deploy", ...args];
  const options = { env: platform.env, all: true, reject: false, input: "something else\n" } as const;
  const { exitCode, all: output } = await execa(process.execPath, all, options);
  return { exitCode, output: output ?? "" };
};
const secret = (name: string) => platform.worker?.bindings.find((binding) => binding.name === name);

test("a first deployment is whole, and where nobody sits there no token is made", async () => {
  const { exitCode, output } = await deploy("--no-wait");
  expect([exitCode, output]).toEqual([0, expect.stringContaining("Nobody may call it yet")]);
  expect(output).not.toContain("dme_");
  expect(Object.keys(platform.worker?.modules ?? {}).sort()).toEqual([
    "index.js",
    "modules/resonate.js",
    "modules/runner.js",
  ]);
  const objects = platform.worker?.bindings.filter(({ type }) => type === "durable_object_namespace");
  expect(objects?.map(({ name, class_name }) => `${name} ${class_name}`).sort()).toEqual([
    "LISTENER Listener",
    "RESONATE ResonateObject",
    "RUNNER RunnerObject",
  ]);
});

test("it makes the first caller, whose token is shown and of whom the deployment knows the hash; once", async () => {
  const { exitCode, output } = await deploy("--caller", "ada", "--no-wait");
  expect(exitCode).toBe(0);
  const [token = ""] = /dme_[\w-]+/.exec(output) ?? [];
  const sha256 = createHash("sha256").update(token).digest("hex");
  expect(secret("AUTH_MODE")?.text).toBe("bearer");
  expect(JSON.parse(secret("BEARER_TOKENS")?.text ?? "[]")).toEqual([{ name: "ada", sha256 }]);
  expect(output).toContain(
    "claude mcp add --transport http durable-mcp-edge https://durable-mcp-edge.me.workers.dev/mcp",
  );

  const again = await deploy("--caller", "ada", "--no-wait");
  expect([again.exitCode, again.output]).toEqual([0, expect.not.stringContaining("dme_")]);
  expect(JSON.parse(secret("BEARER_TOKENS")?.text ?? "[]")).toEqual([{ name: "ada", sha256 }]);
});

test("--dry-run sends nothing and says what it would", async () => {
  const before = platform.uploads;
  const { exitCode, output } = await deploy("--dry-run");
  expect([exitCode, output]).toEqual([0, expect.stringContaining("env.RESONATE (ResonateObject)")]);
  expect(platform.uploads).toBe(before);
});

test("--remove asks for the name, and removes nothing for another one", async () => {
  const { exitCode, output } = await deploy("--remove");
  expect([exitCode, output]).toEqual([1, expect.stringContaining("Nothing was removed")]);
  expect(platform.worker).toBeDefined();
  expect((await deploy("--remove", "--yes")).exitCode).toBe(0);
  expect(platform.worker).toBeUndefined();
});
