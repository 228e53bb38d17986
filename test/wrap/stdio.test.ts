/** Commands as wrapped servers: those that end are started again, files are written at most once, lists of tools change. */
import { mkdtemp, readFile, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { until } from "../../infra/testing/process.ts";
import { COUNTING, FILESYSTEM } from "./servers.ts";
import { connect, structuredOf, wrapped } from "./support.ts";

const folder = () => mkdtemp(join(tmpdir(), "wrapped-"));

test("a program that ends is started again; the call that it ended with is not repeated, and says so", async () => {
  const file = join(await folder(), "calls");
  await using stack = await wrapped({
    name: "counting",
    command: process.execPath,
    args: [COUNTING],
    env: { CALLS: file },
  });
  const client = await connect(stack.url);
  const call = async (name: string, args: object) =>
    structuredOf(await client.callTool({ name, arguments: { ...args } }));
  expect((await call("write", { id: "a" })).text).toBe("write a is done");
  const crashed = await call("crash", { id: "b" });
  expect(crashed).toMatchObject({
    isError: true,
    text: expect.stringContaining("whether it had its effect is unknown"),
  });
  const { job_name } = await call("write", { id: "c", job_name: "c" });
  const again = job_name === undefined ? undefined : await stack.call("await_result", { job_names: [job_name] });
  expect(JSON.stringify(again ?? (await call("write", { id: "c", job_name: "c" })))).toContain("write c is done");
  expect((await readFile(file, "utf8")).trim().split("\n")).toEqual(["write a", "crash b", "write c"]);
  await client.close();
});

test("the file system server: what it reads and writes is what is in the files", async () => {
  const root = await folder();
  await writeFile(join(root, "a.txt"), "hello");
  await using stack = await wrapped({
    name: "files",
    command: process.execPath,
    args: [FILESYSTEM, root],
    prefix: "fs",
  });
  const client = await connect(stack.url, "2025");
  const call = async (name: string, args: object) =>
    structuredOf(await client.callTool({ name, arguments: { ...args } }));
  expect((await call("fs_read_text_file", { path: join(root, "a.txt") })).text).toContain("hello");
  const edits = [{ oldText: "hello", newText: "hello hello" }];
  for (let i = 0; i < 2; i++) await call("fs_edit_file", { path: join(root, "a.txt"), edits, job_name: "edit" });
  expect(await readFile(join(root, "a.txt"), "utf8")).toBe("hello hello");
  const outside = await call("fs_read_text_file", { path: "/etc/passwd" });
  expect(outside).toMatchObject({ isError: true, text: expect.stringMatching(/denied/i) });
  await client.close();
});

test("a list of tools that changes is written down", async () => {
  const file = join(await folder(), "calls");
  await using stack = await wrapped(
    { name: "counting", command: process.execPath, args: [COUNTING], env: { CALLS: file } },
    { env: { WRAP_FOLLOW: "1" } },
  );
  await stack.call("grow");
  const snapshot = join(stack.root, "snapshot.ts");
  await until("the list to be written", async () => (await readFile(snapshot, "utf8")).includes("Came late."));
});
