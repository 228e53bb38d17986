import { cp, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { execa } from "execa";
import { afterAll, beforeAll, expect, test } from "vitest";
import { freePort } from "./support/port.ts";
import { until } from "./support/process.ts";

const ROOT = join(import.meta.dirname, "..");
let copy: string;

/** The project with the README's example added to it, as a reader would. */
beforeAll(async () => {
  copy = await mkdtemp(join(tmpdir(), "durable-mcp-edge-"));
  for (const part of [
    "functions",
    "worker",
    "infra",
    "package.json",
    "package-lock.json",
    "wrangler.toml",
    "tsconfig.json",
  ]) {
    await cp(join(ROOT, part), join(copy, part), { recursive: true });
  }
  await symlink(join(ROOT, "node_modules"), join(copy, "node_modules"));

  const readme = await readFile(join(ROOT, "README.md"), "utf8");
  const files = [...readme.matchAll(/```ts\n\/\/ (\S+)\n([\s\S]*?)```/g)];
  expect(files.map(([, path]) => path)).toEqual([
    "functions/jobs/site.ts",
    "worker/functions/site.ts",
    "functions/tools/site.ts",
  ]);
  for (const [, path = "", code = ""] of files) await writeFile(join(copy, path), code);
  await addToList("functions/jobs/index.ts", "site", "./site.ts", "site", /(JOBS[^=]*= \[)/);
  await addToList("functions/tools/index.ts", "waitForSite", "./site.ts", "waitForSite", /(TOOLS[^=]*= \[)/);
  const item = "durable(site, waitForSite)";
  await addToList("worker/functions/index.ts", "waitForSite", "./site.ts", item, /(return \[)/);
  await prepend("worker/functions/index.ts", 'import { site } from "../../functions/jobs/site.ts";');
});

afterAll(() => rm(copy, { recursive: true, force: true }));

async function addToList(path: string, name: string, from: string, item: string, list: RegExp) {
  const source = await readFile(join(copy, path), "utf8");
  expect(source).toMatch(list);
  await writeFile(join(copy, path), source.replace(list, `$1${item}, `));
  await prepend(path, `import { ${name} } from "${from}";`);
}

async function prepend(path: string, line: string) {
  await writeFile(join(copy, path), `${line}\n${await readFile(join(copy, path), "utf8")}`);
}

test("the README's durable tool is under 40 lines, type-checks and runs", async () => {
  const readme = await readFile(join(ROOT, "README.md"), "utf8");
  const lines = [...readme.matchAll(/```ts\n([\s\S]*?)```/g)].flatMap(([, code = ""]) => code.trim().split("\n"));
  expect(lines.filter((line) => line !== "" && !/^\/\/ \S+\.ts$/.test(line)).length).toBeLessThan(40);

  await execa(join(ROOT, "node_modules/.bin/tsc"), ["--noEmit"], { cwd: copy });
  await execa(join(ROOT, "node_modules/.bin/tsc"), ["--noEmit", "-p", "functions"], { cwd: copy });

  const [port, resonatePort, workerPort] = await Promise.all([freePort(), freePort(), freePort()]);
  const ports = ["--port", port, "--resonate-port", resonatePort, "--worker-port", workerPort].map(String);
  const env = { RESONATE_URL: "" };
  const args = ["infra/start.ts", "--sample-weather", "--memory", ...ports];
  const launcher = execa(process.execPath, args, { cwd: copy, env, reject: false, buffer: false, stdin: "ignore" });
  let output = "";
  launcher.stdout.setEncoding("utf8").on("data", (text: string) => {
    output += text;
  });
  try {
    await until("the stack to be ready", () => output.includes("Ready."), 30_000);
    const url = `http://127.0.0.1:${port}`;
    const client = new Client({ name: "test", version: "1" }, { versionNegotiation: { mode: "auto" } });
    await client.connect(new StreamableHTTPClientTransport(new URL(`${url}/mcp`)));
    const site = `${url}/health`;
    const result = await client.callTool({ name: "wait_for_site", arguments: { url: site } });
    expect(result.structuredContent).toMatchObject({
      job_name: `site_${encodeURIComponent(site)}`,
      status: "complete",
      result: { url: site, attempt: 1 },
    });
    await client.close();
  } finally {
    launcher.kill("SIGTERM");
    await launcher;
  }
}, 90_000);
