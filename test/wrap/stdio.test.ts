/** Commands as wrapped servers: restarts of programs that end, writes at most once, lists of tools that change. */
import { mkdir, mkdtemp, readFile, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { expect, test } from "vitest";
import type { Finding } from "../../cli/doctor/finding.ts";
import { run, until } from "../../testing/stack/program.ts";
import { COUNTING, FILESYSTEM } from "./servers.ts";
import { connect, structuredOf, wrappedStack } from "./support.ts";

const folder = () => mkdtemp(join(tmpdir(), "wrapped-"));

test("a program that ends is started again, and the call that ended it is not repeated; a changed list of tools is saved", async () => {
  const file = join(await folder(), "calls");
  const program = { command: process.execPath, args: [COUNTING], env: { CALLS: file } };
  await using stack = await wrappedStack({ name: "counting", ...program, follow: true }, { env: { WRAP_FOLLOW: "1" } });
  const client = await connect(stack.url);
  const call = async (name: string, args: object) =>
    structuredOf(await client.callTool({ name, arguments: { ...args } }));
  expect((await call("write", { id: "a" })).text).toBe("write a is done");
  const crash = await call("crash", { id: "b" });
  expect(crash).toMatchObject({
    isError: true,
    text: expect.stringContaining("whether it had its effect is unknown"),
  });
  const { job_name } = await call("write", { id: "c", job_name: "c" });
  const again = job_name === undefined ? undefined : await stack.call("await_result", { job_names: [job_name] });
  expect(JSON.stringify(again ?? (await call("write", { id: "c", job_name: "c" })))).toContain("write c is done");
  expect((await readFile(file, "utf8")).trim().split("\n")).toEqual(["write a", "crash b", "write c"]);
  await call("grow", {});
  const snapshot = join(stack.root, "snapshot.ts");
  await until("the list to be written", async () => (await readFile(snapshot, "utf8")).includes("Came late."));
  await client.close();
});

/** A call of every tool of the file system server, for its root. */
const FILE_CALLS: readonly [name: string, args: (root: string) => object][] = [
  ["read_file", (root) => ({ path: join(root, "a.txt"), head: 2 })],
  ["read_text_file", (root) => ({ path: join(root, "a.txt"), tail: 1 })],
  ["read_media_file", (root) => ({ path: join(root, "dot.png") })],
  ["read_multiple_files", (root) => ({ paths: [join(root, "a.txt"), join(root, "none")] })],
  ["write_file", (root) => ({ path: join(root, "c.txt"), content: "written" })],
  ["edit_file", (root) => ({ path: join(root, "a.txt"), edits: [{ oldText: "two", newText: "2" }] })],
  ["edit_file", (root) => ({ path: join(root, "a.txt"), edits: [{ oldText: "none", newText: "" }] })],
  ["create_directory", (root) => ({ path: join(root, "new") })],
  ["list_directory", (root) => ({ path: root })],
  ["list_directory_with_sizes", (root) => ({ path: root })],
  ["directory_tree", (root) => ({ path: root })],
  ["move_file", (root) => ({ source: join(root, "c.txt"), destination: join(root, "d.txt") })],
  ["search_files", (root) => ({ path: root, pattern: "**/*.md" })],
  ["get_file_info", (root) => ({ path: join(root, "sub", "b.md") })],
  ["list_allowed_directories", () => ({})],
];

test("every tool of the file system server answers through the wrap as it does without it, and a repeated edit is made once", async () => {
  const roots = await Promise.all([folder(), folder()]);
  for (const root of roots) {
    await mkdir(join(root, "sub"));
    await writeFile(join(root, "a.txt"), "one\ntwo\nthree\n");
    await writeFile(join(root, "sub", "b.md"), "# b\n");
    await writeFile(join(root, "dot.png"), Buffer.from("iVBORw0KGgo=", "base64"));
  }
  const [plain, wrap] = roots as [string, string];
  await using stack = await wrappedStack({
    name: "files",
    command: process.execPath,
    args: [FILESYSTEM, wrap],
    prefix: "fs",
  });
  const through = await connect(stack.url);
  const direct = new Client({ name: "test", version: "1.0.0" });
  await direct.connect(
    new StdioClientTransport({ command: process.execPath, args: [FILESYSTEM, plain], stderr: "ignore" }),
  );
  const { tools } = await direct.listTools();
  expect(new Set(FILE_CALLS.map(([name]) => name))).toEqual(new Set(tools.map(({ name }) => name)));
  // The times of the files and the names of the folders differ.
  const same = (result: object, root: string) =>
    JSON.stringify(result)
      .replaceAll(root, "ROOT")
      .replace(/(created|modified|accessed): [^\\]*/g, "$1");
  for (const [name, args] of FILE_CALLS) {
    const expected = await direct.callTool({ name, arguments: { ...args(plain) } });
    const { _meta, ...actual } = await through.callTool({ name: `fs_${name}`, arguments: { ...args(wrap) } });
    expect(same(actual, wrap), name).toBe(same(expected, plain));
  }
  await direct.close();
  const client = await connect(stack.url, "2025");
  const call = async (name: string, args: object) =>
    structuredOf(await client.callTool({ name, arguments: { ...args } }));
  await writeFile(join(wrap, "a.txt"), "hello");
  const edits = [{ oldText: "hello", newText: "hello hello" }];
  for (let i = 0; i < 2; i++) await call("fs_edit_file", { path: join(wrap, "a.txt"), edits, job_name: "edit" });
  expect(await readFile(join(wrap, "a.txt"), "utf8")).toBe("hello hello");
  const outside = await call("fs_read_text_file", { path: "/etc/passwd" });
  expect(outside).toMatchObject({ isError: true, text: expect.stringMatching(/denied/i) });
  await Promise.all([through.close(), client.close()]);
});

test("doctor shows for each server how its tools are called, and the changes since sync", async () => {
  const file = join(await folder(), "calls");
  const options = {
    name: "counting",
    command: process.execPath,
    args: [COUNTING],
    env: { CALLS: file },
    policies: { read: { freshFor: 60_000, shared: true }, steps: { repeatable: true } },
  };
  await using stack = await wrappedStack(options);
  const snapshot = join(stack.root, "snapshot.ts");
  await writeFile(snapshot, (await readFile(snapshot, "utf8")).replace('"Writes."', '"Wrote."'));
  const doctor = run("cli/main.ts", { args: ["doctor", "--url", stack.url, "--json"], cwd: stack.root });
  await doctor.exited;
  const { findings } = JSON.parse(doctor.output().slice(doctor.output().indexOf("{"))) as { findings: Finding[] };
  const [table, changes] = findings.filter(({ check }) => check === "wrapped counting");
  expect(table).toMatchObject({ status: "ok", detail: expect.stringMatching(/^counting 1\.0\.0, revision 20.*tools/) });
  expect(table?.detail).toMatch(/write +at most once +each call its own job +each caller/);
  expect(table?.detail).toMatch(
    /read +repeatable \(readOnlyHint\) +same arguments, one job for 60 s more +all callers/,
  );
  expect(table?.detail).toMatch(/steps +repeatable \(configured\)/);
  expect(changes).toMatchObject({
    status: "warning",
    detail: expect.stringContaining('~ write description: "Wrote." → "Writes."'),
  });
});
