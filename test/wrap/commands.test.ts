/** The commands `wrap`, which needs one line, and `sync`, for a user's own project. */
import { mkdir, mkdtemp, readFile, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { expect, test } from "vitest";
import { writeProject } from "../../cli/wrap/wrap-directory.ts";
import { freePort } from "../../testing/stack/port.ts";
import { run, until } from "../../testing/stack/program.ts";
import { WrappedServer } from "../../wrap/worker/wrapped-server.ts";
import { COUNTING, EVERYTHING, serve } from "./servers.ts";
import { connect, isAlive, linesOf, SILENT_LOG, structuredOf } from "./support.ts";

const MAIN = resolve("cli/main.ts");

const folder = () => mkdtemp(join(tmpdir(), "wrap-commands-"));

async function runCommand(args: string[], cwd?: string) {
  const program = run(MAIN, { args, ...(cwd !== undefined && { cwd }) });
  const { exitCode } = await program.exited;
  return { exitCode, output: program.output() };
}

test("wrap starts a stack in front of a command in one line, according to its options, and ends it", async () => {
  const file = join(await folder(), "calls");
  const [edge, worker, resonate] = [await freePort(), await freePort(), await freePort()];
  const ports = ["--port", `${edge}`, "--worker-port", `${worker}`, "--resonate-port", `${resonate}`];
  const options = ["--name", `counting-${process.pid}`, "--tools", "read,w*", "--prefix", "my", "--after", "20"];
  const data = ["--data", await folder()];
  const more = ["--repeatable", "write", "--env", `CALLS=${file}`, "--env", "WHOSE=yours", ...data];
  const command = ["--", process.execPath, COUNTING];
  await using program = run(MAIN, { args: ["wrap", ...options, ...more, ...ports, ...command] });
  const url = await until(
    "the banner",
    () => /MCP endpoint +(\S+)/.exec(program.output())?.[1] ?? (program.output().includes("Error") ? "" : undefined),
    120_000,
  );
  expect(url, program.output()).toBe(`http://127.0.0.1:${edge}/mcp`);
  expect(program.output()).toMatch(/my_write +repeatable \(configured\)/);
  expect(program.output()).toMatch(/my_whose +at most once/);
  // The configuration for a client has the wrapped server's own name, like that of any other server.
  const [, config = ""] = /Cursor +npm (start -- .*--config cursor.*)/.exec(program.output()) ?? [];
  const configuration = await runCommand(config.replace(" --", "").split(" "));
  expect(configuration.output).toContain(`"counting-${process.pid}": {`);
  expect(configuration.output).toContain(`"url": "${url}"`);
  const client = await connect(url);
  const { tools } = await client.listTools();
  const own_ = tools.map(({ name }) => name).filter((name) => name.startsWith("my_"));
  expect(own_.toSorted()).toEqual(["my_read", "my_whose", "my_write"]);
  const call = async (name: string) => structuredOf(await client.callTool({ name, arguments: { id: name } })).text;
  expect(await call("my_write")).toBe("write my_write is done");
  expect(await call("my_whose")).toBe("yours");
  await client.close();
  // A value that was given on the command line is in no file.
  const writtenOptions = await readFile(join(data[1] as string, "wrap/options.json"), "utf8");
  expect(writtenOptions).not.toContain("yours");
  program.signal("SIGINT");
  expect(await program.exited).toMatchObject({ exitCode: 0 });
});

test("a slow program is started once: the command says what it waits for, and the worker takes the program over", async () => {
  const root = await folder();
  const starts = join(root, "starts");
  const slow = join(root, "slow.mjs");
  const wait = "await new Promise((resolve) => setTimeout(resolve, 6_000));";
  const note = 'import { appendFileSync } from "node:fs"; appendFileSync(process.env.STARTS, process.pid + "\\n");';
  await writeFile(slow, `${note} console.error("loading a model"); ${wait} await import(${JSON.stringify(COUNTING)});`);
  const env = ["--env", `CALLS=${join(root, "calls")}`, "--env", `STARTS=${starts}`];
  const wrapIt = (...more: string[]) =>
    run(MAIN, { args: ["wrap", ...env, ...more, "--", process.execPath, slow], cwd: root });
  await using impatient = wrapIt("--start-timeout", "1");
  expect(await impatient.exited).toMatchObject({ exitCode: 1 });
  expect(impatient.output()).toMatch(/slow cannot be reached: .*it wrote: loading a model/);
  const before = (await linesOf(starts)).length;
  await using program = wrapIt();
  await until("it to serve", () => /^Ready/m.test(program.output()), 60_000);
  expect(program.output()).toContain("slow has not answered for 5 s; it wrote: loading a model");
  const [, url = ""] = /MCP endpoint +(\S+)/.exec(program.output()) ?? [];
  const client = await connect(url);
  const answer = structuredOf(await client.callTool({ name: "write", arguments: { id: "a" } }));
  expect(answer.text).toBe("write a is done");
  await client.close();
  const [pid, ...more] = (await linesOf(starts)).slice(before).map(Number);
  expect(more).toEqual([]);
  program.signal("SIGINT");
  expect(await program.exited).toMatchObject({ exitCode: 0 });
  await until("the program to end", () => !isAlive(pid ?? 0), 30_000);
});

test("two wrapped servers in one folder have their own addresses, tools, state and names", async () => {
  const root = await folder();
  const file = join(root, "calls");
  const script = join(root, "counting/server.ts");
  await mkdir(join(root, "counting"));
  await writeFile(script, `await import(${JSON.stringify(COUNTING)});`);
  const wrapIt = async (...server: string[]) => {
    const args = ["wrap", "--env", `CALLS=${file}`, "--", process.execPath, ...server];
    const program = run(MAIN, { args, cwd: root });
    await until("it to serve or to end", () => /^Ready|It runs already|Error/m.test(program.output()), 60_000);
    const [, url = ""] = /MCP endpoint +(\S+)/.exec(program.output()) ?? [];
    return { program, url };
  };
  await using first = (await wrapIt(COUNTING)).program;
  const [, firstUrl = ""] = /MCP endpoint +(\S+)/.exec(first.output()) ?? [];
  const { program: second, url: secondUrl } = await wrapIt(EVERYTHING, "stdio");
  await using _ = second;
  const { program: third, url: thirdUrl } = await wrapIt(script);
  await using __ = third;
  expect(third.output()).toMatch(/counting is the name of another server here: this one is counting-[0-9a-f]{4}\./);
  expect(new Set([firstUrl, secondUrl, thirdUrl]).size).toBe(3);
  const names = async (url: string) => {
    const client = await connect(url);
    const { tools } = await client.listTools();
    await client.close();
    return tools.map(({ name }) => name);
  };
  expect(await names(secondUrl)).toContain("get-sum");
  const firstNames = await names(firstUrl);
  expect(firstNames).toContain("write");
  expect(firstNames).not.toContain("get-sum");
  // A second start of the same server is refused, and changes nothing.
  const { program: again } = await wrapIt(COUNTING);
  expect(await again.exited).toMatchObject({ exitCode: 1 });
  expect(again.output()).toContain(`It runs already at ${firstUrl}`);
  expect(await names(firstUrl)).toEqual(firstNames);
});

test.each([
  [2, ["wrap"], /Give the URL of a server, or a command after --/],
  [2, ["wrap", "--after", "x", "https://a.example/mcp"], /--after accepts seconds/],
  [2, ["wrap", "ftp://a.example"], /is not an http or https URL/],
  [1, ["wrap", "http://127.0.0.1:6553/mcp"], /allow it with allowPrivate \(--allow-private\)/],
  [1, ["wrap", "--", process.execPath, "-e", "console.error('no module named fastmcp')"], /no module named fastmcp/],
])("exits with %i: %j", async (code, args, words) => {
  const { exitCode, output } = await runCommand(args);
  expect(exitCode).toBe(code);
  expect(output).toMatch(words);
  expect(output).not.toMatch(/^ +at /m);
});

test("sync adds a server to a project, and updates the snapshots of the servers that the project has", async () => {
  const root = await folder();
  const file = join(root, "calls");
  await writeFile(join(root, "package.json"), JSON.stringify({ name: "mine", type: "module" }));
  const addition = await runCommand(["sync", "--env", `CALLS=${file}`, "--", process.execPath, COUNTING], root);
  expect(addition.output).toContain("tools/counting holds it. Name it in the two lists:");
  expect(addition.output).toContain("The worker's environment needs WRAP_SECRET_COUNTING_1");
  const snapshot = await readFile(join(root, "tools/counting/counting.snapshot.ts"), "utf8");
  expect(snapshot).toContain('"Writes."');
  const again = await runCommand(["sync", "--env", `CALLS=${file}`, "--", process.execPath, COUNTING], root);
  expect(again.output).toContain("tools/counting is there already");

  const options = { name: "counting", command: process.execPath, args: [COUNTING], env: { CALLS: file } };
  const server = new WrappedServer(options, process.env);
  const present = await server.currentSnapshot(SILENT_LOG);
  await server.close();
  const project = join(root, "project");
  await mkdir(project);
  await writeProject(project, options, present);
  expect((await runCommand(["sync"], project)).output).toMatch(/^counting: \d+ tools, as it was$/m);
  const changedTools = present.tools.filter(({ name }) => name !== "read").map((tool) => ({ ...tool, title: "Old" }));
  await writeProject(project, options, { ...present, tools: changedTools });
  const output = (await runCommand(["sync"], project)).output;
  expect(output).toMatch(/counting: \d+ tools, changed\nIts tools have changed:\n(.*\n)* +~ write title: "Old" → none/);
  expect(output).toMatch(/Held back until you type .*--accept:\n +\+ read is new: .*Reads\./);
  // Only --accept uses the lists that the last run has shown. Another run asks the server again.
  const waiting = join(project, "waiting.json");
  const waitingText = await readFile(waiting, "utf8");
  await writeFile(waiting, JSON.stringify({ ...present, tools: [] }));
  expect((await runCommand(["sync"], project)).output).not.toContain("is gone");
  expect(await readFile(waiting, "utf8")).toBe(waitingText);
  expect((await runCommand(["sync", "--accept"], project)).output).toMatch(/Its tools have changed:\n +\+ read is new/);
  expect((await runCommand(["sync"], project)).output).toMatch(/as it was/);
  const lists = { prompts: [{ name: "hello" }], resources: [], resourceTemplates: [] };
  await writeFile(waiting, JSON.stringify({ ...present, lists }));
  const accepting = await runCommand(["sync", "--accept", "hello"], project);
  expect(accepting).toMatchObject({ exitCode: 0, output: expect.stringContaining("+ prompt hello is new") });
});

test("sync writes no key of a URL into the project", async () => {
  const root = await folder();
  await using server = await serve(COUNTING, [], { CALLS: join(root, "calls") });
  await writeFile(join(root, "package.json"), JSON.stringify({ name: "mine", type: "module" }));
  const { output } = await runCommand(
    ["sync", "--name", "acme", "--allow-private", `${server.url}?apiKey=secret-key`],
    root,
  );
  expect(output).toContain("The worker's environment needs WRAP_SECRET_ACME_1");
  expect(output).toContain("Every user of this machine could read");
  const files = await Promise.all(
    ["acme.ts", "acme.run.ts", "acme.snapshot.ts"].map((name) => readFile(join(root, "tools/acme", name), "utf8")),
  );
  expect(files.join("\n")).toContain("?apiKey=$(WRAP_SECRET_ACME_1)");
  expect(files.join("\n")).not.toContain("secret-key");
});
