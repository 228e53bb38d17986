/** A server's list that is far too long and too deep is bounded while it is read, and the omitted tools are reported. */
import { readdir, readFile } from "node:fs/promises";
import { resolve } from "node:path";
import { expect, test } from "vitest";
import { run, until } from "../../../testing/stack/program.ts";
import { connect, structuredOf } from "../support.ts";

/** The peak memory of the launcher and of its worker, in MB. They are found by `NAME`. */
async function memory(): Promise<number[]> {
  const pids = (await readdir("/proc")).filter((name) => /^\d+$/.test(name));
  const sizes = pids.map(async (pid) => {
    const [words, status] = await Promise.all(
      ["cmdline", "status"].map((file) => readFile(`/proc/${pid}/${file}`, "utf8").catch(() => "")),
    );
    const isOurs =
      words?.includes(NAME) || (words?.includes("wrapped-worker") && (await environment(pid)).includes(NAME));
    return isOurs ? [Number(/VmHWM:\s+(\d+)/.exec(status ?? "")?.[1]) / 1_000] : [];
  });
  return (await Promise.all(sizes)).flat();
}

const environment = (pid: string) => readFile(`/proc/${pid}/environ`, "utf8").catch(() => "");

/** Stands in the arguments of the launcher, and in the environment of the worker. */
const NAME = `endless-${process.pid}`;

test("200,000 tools and a schema of 8,000 levels are read up to the bounds, and launcher and worker stay small", async () => {
  const command = ["--", process.execPath, resolve("test/wrap/list/endless.ts")];
  await using program = run("cli/main.ts", {
    args: ["wrap", "--memory", "--plain", "--name", NAME, ...command],
    env: { ENDLESS: NAME },
  });
  await until("it to serve", () => /^Ready|Error|RangeError/m.test(program.output()), 120_000);
  const output = program.output();
  expect(output).toContain('"deep" is not read: it is nested more than 64 deep.');
  expect(output).toContain('"wide" is not read: it is described in more than 64000 characters.');
  expect(output).toMatch(
    /Its list is longer than 2000 tools or 4000000 characters: what comes after the first 2000 is/,
  );
  const [, url = ""] = /MCP endpoint +(\S+)/.exec(output) ?? [];
  const client = await connect(url);
  expect(structuredOf(await client.callTool({ name: "echo", arguments: {} })).text).toBe("echoed");
  await client.close();
  const all = await memory();
  expect(all.length).toBeGreaterThanOrEqual(2);
  for (const megabytes of all) expect(megabytes).toBeLessThan(400);
});
