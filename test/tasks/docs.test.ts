/** The example of docs/tasks.md as a reader would add it: it type-checks, asks, and is answered. */
import { cp, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { execa } from "execa";
import { afterAll, beforeAll, expect, test } from "vitest";
import { freePort } from "../support/port.ts";
import { run, until } from "../support/process.ts";
import { accept, tasksAt } from "./support.ts";

const ROOT = join(import.meta.dirname, "../..");
const PARTS = ["functions", "worker", "infra", "package.json", "package-lock.json", "wrangler.toml", "tsconfig.json"];

let copy: string;
beforeAll(async () => {
  copy = await mkdtemp(join(tmpdir(), "tasks-docs-"));
  for (const part of PARTS) await cp(join(ROOT, part), join(copy, part), { recursive: true });
  await symlink(join(ROOT, "node_modules"), join(copy, "node_modules"));
  const docs = await readFile(join(ROOT, "docs/tasks.md"), "utf8");
  const files = [...docs.matchAll(/```ts\n\/\/ (\S+)\n([\s\S]*?)```/g)];
  expect(files).toHaveLength(3);
  for (const [, path = "", code = ""] of files) await writeFile(join(copy, path), code);

  const importJob = 'import { releaseJob } from "../../functions/jobs/release.ts";\n';
  const importFunction = 'import { release } from "./release.ts";\n';
  await add(
    "functions/jobs/index.ts",
    'import { releaseJob } from "./release.ts";\n',
    "[weather",
    "[releaseJob, weather",
  );
  await add("functions/tools/index.ts", 'import { releaseTool } from "./release.ts";\n', "= [", "= [releaseTool, ");
  await add(
    "worker/functions/index.ts",
    importJob + importFunction,
    "return [",
    "return [durable(releaseJob, release(store)), ",
  );
});
afterAll(() => rm(copy, { recursive: true, force: true }));

async function add(path: string, imports: string, before: string, after: string) {
  const source = await readFile(join(copy, path), "utf8");
  expect(source).toContain(before);
  await writeFile(join(copy, path), imports + source.replace(before, after));
}

test("a job of the example asks for approval and is released when it is given", { timeout: 60_000 }, async () => {
  await execa(join(ROOT, "node_modules/.bin/tsc"), ["--noEmit"], { cwd: copy });
  await execa(join(ROOT, "node_modules/.bin/tsc"), ["--noEmit", "-p", "functions"], { cwd: copy });

  const [port, resonatePort, workerPort] = await Promise.all([freePort(), freePort(), freePort()]);
  const ports = ["--port", port, "--resonate-port", resonatePort, "--worker-port", workerPort].map(String);
  const args = ["--sample-weather", "--memory", ...ports];
  await using launcher = run(join(copy, "infra/start.ts"), { args, env: { RESONATE_URL: "" } });
  await until("the stack to be ready", () => launcher.output().includes("Ready."), 30_000);

  const tasks = tasksAt(`http://127.0.0.1:${port}/mcp`);
  const [approved, refused] = [
    await tasks.call("release", { version: "1.2" }),
    await tasks.call("release", { version: "2.0" }),
  ];
  const { inputRequests } = await tasks.reaches(approved.taskId, "input_required");
  const [key = ""] = Object.keys(inputRequests);
  expect(inputRequests[key].params.message).toBe("Release 1.2?");
  await tasks.update(approved.taskId, { [key]: accept({ approved: true, reason: "It is time." }) });
  const { result } = (await tasks.reaches(approved.taskId, "completed")).result.structuredContent;
  expect(result).toMatchObject({ version: "1.2", released_at: expect.any(String) });

  await tasks.reaches(refused.taskId, "input_required");
  await tasks.update(refused.taskId, { [key]: { action: "decline" } });
  expect((await tasks.reaches(refused.taskId, "completed")).result).toMatchObject({
    isError: true,
    structuredContent: { error: "2.0 was not approved" },
  });
  launcher.signal("SIGTERM");
  await launcher.exited;
});
