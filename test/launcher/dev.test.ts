/** `npm run dev` as an author uses it, in a project that is edited while it runs. */
import { readdir, readFile, rename, writeFile } from "node:fs/promises";
import { join, relative } from "node:path";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { gone, type Launcher, launch } from "./launcher.ts";
import { copyProject, type Folder } from "./project.ts";

vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 });

let project: Folder;
let launcher: Launcher;
let client: Client;

beforeAll(async () => {
  project = await copyProject();
  launcher = await launch({ command: "dev", args: ["--sample-weather"], via: "node", cwd: project.path });
  await launcher.printed("Ready.");
  client = new Client({ name: "author", version: "1" });
  await client.connect(new StreamableHTTPClientTransport(new URL(launcher.url)));
});
afterAll(async () => {
  await client?.close();
  await launcher?.[Symbol.asyncDispose]();
  await project?.[Symbol.asyncDispose]();
});

/** Saves a file atomically, so that a build never reads half of it. */
async function save(path: string, text: string): Promise<void> {
  await writeFile(`${path}.new`, text);
  await rename(`${path}.new`, path);
}

/** Changes the first occurrence of `text` in the sources below `tools/`; resolves with the file, the line and an undo. */
async function edit(text: string | RegExp, change: (found: string) => string) {
  const entries = await readdir(join(project.path, "tools"), { recursive: true, withFileTypes: true });
  for (const entry of entries.filter(({ name }) => name.endsWith(".ts") && !name.endsWith(".test.ts"))) {
    const path = join(entry.parentPath, entry.name);
    const source = await readFile(path, "utf8");
    const found = typeof text === "string" ? text : text.exec(source)?.[0];
    if (found === undefined || !source.includes(found)) continue;
    await save(path, source.replace(found, change));
    const line = source.slice(0, source.indexOf(found)).split("\n").length;
    return { path, line, at: `${relative(project.path, path)}:${line}`, undo: () => save(path, source) };
  }
  throw new Error(`${text} is not in any file below tools/`);
}

/** The launcher prints this once it serves an edit. */
const NEW = "the new version (";
/** The number of times that a text has been printed so far. */
const times = (text: string) => launcher.output().split(text).length - 1;

/** Runs `act` and waits until `text` is printed once more. */
async function until<T>(text: string, act: () => Promise<T>): Promise<T> {
  const before = times(text);
  const result = await act();
  await launcher.printed(text, before + 1);
  return result;
}

// oxlint-disable-next-line typescript/no-explicit-any -- only expectations read the answer of a tool
async function call(name: string, args: object): Promise<any> {
  const { structuredContent, content, isError } = await client.callTool({ name, arguments: { ...args } });
  return isError ? content : structuredContent;
}

const description = async (name: string) => {
  const { tools } = await client.listTools();
  return tools.find((tool) => tool.name === name)?.description ?? "";
};

describe("npm run dev", () => {
  test("serves an edited definition without cutting off a waiting call, and keeps the state", async () => {
    await call("set_timer", { timer_name: "kept", seconds: 3_600 });
    await call("set_timer", { timer_name: "eggs", seconds: 10 });
    const waiting = call("await_result", { job_names: ["timer_eggs"], timeout_seconds: 60 });
    const before = await description("set_timer");
    const words = before.slice(0, 12);
    await until(NEW, () => edit(words, () => "EDITED. Set"));
    expect(await description("set_timer")).toMatch(/^EDITED\. Set/);
    expect(await call("get_timer_status", { timer_name: "kept" })).toMatchObject({ status: "running" });
    expect((await waiting).results).toHaveProperty("timer_eggs");
  });

  test("runs an edited durable function, also for jobs that sleep during the edit", async () => {
    await call("set_timer", { timer_name: "asleep", seconds: 20 });
    const { undo } = await until(NEW, () => edit('return "complete";', () => 'return "edited";'));
    await call("set_timer", { timer_name: "fresh", seconds: 1 });
    const { results } = await call("await_result", { job_names: ["timer_fresh", "timer_asleep"] });
    expect(results).toMatchObject({ timer_fresh: "edited", timer_asleep: "edited" });
    await until(NEW, undo);
  });

  test("runs a mended step again when its failed job is started again", async () => {
    const wrong = `const eggs = await ctx.step("count", () => 11);
  if (eggs !== 12) throw new Error(\`\${eggs} eggs\`);
  return \`\${eggs} eggs\`;`;
    const { undo } = await until(NEW, () => edit('return "complete";', () => wrong));
    await call("set_timer", { timer_name: "dozen", seconds: 1 });
    const failed = await call("await_result", { job_names: ["timer_dozen"] });
    expect(failed.errors.timer_dozen).toContain("11 eggs");
    await until(NEW, () => edit("() => 11", () => "() => 12"));
    const { job_name } = await call("set_timer", { timer_name: "dozen", seconds: 1 });
    const { results } = await call("await_result", { job_names: [job_name] });
    expect(results).toEqual({ [job_name]: "12 eggs" });
    await until(NEW, undo);
  });

  test("shows file and line of a compile error and keeps the previous version running", async () => {
    const { undo, at } = await until("The sources do not run", () =>
      edit('return "complete";', (text) => `${text} = ;`),
    );
    expect(await launcher.printed(`${at}:`)).toContain("The previous version continues.");
    await call("set_timer", { timer_name: "meanwhile", seconds: 1 });
    const { results } = await call("await_result", { job_names: ["timer_meanwhile"] });
    expect(results).toEqual({ timer_meanwhile: "complete" });
    // The undo restores the code that already runs, so nothing is replaced.
    await undo();
    const { undo: again } = await until(NEW, () => edit('return "complete";', () => 'return "repaired";'));
    await until(NEW, again);
  });

  test("keeps the previous version when the new one compiles but does not start", async () => {
    const { undo, at } = await until("the edge does not start", () =>
      edit(/^export const setTimer/m, (text) => `if (globalThis) throw new Error("not today");\n${text}`),
    );
    const output = await launcher.printed(`${at}:`);
    expect(output).toContain("not today");
    expect(await description("set_timer")).toMatch(/^EDITED/);
    await call("set_timer", { timer_name: "steady", seconds: 1 });
    expect((await call("await_result", { job_names: ["timer_steady"] })).results).toEqual({ timer_steady: "complete" });
    await undo();
  });
});

describe("an error thrown", () => {
  test("in a durable function is printed with file and line, and the caller gets the message", async () => {
    const { undo, at } = await until(NEW, () => edit('return "complete";', () => 'throw new Error("no eggs left");'));
    await call("set_timer", { timer_name: "thrown", seconds: 1 });
    const { errors } = await call("await_result", { job_names: ["timer_thrown"] });
    expect(errors.timer_thrown).toContain("no eggs left");
    expect(JSON.stringify(errors)).not.toContain(".ts");
    const output = await launcher.printed("failed   timer_thrown");
    expect(output.slice(output.indexOf("failed   timer_thrown"))).toMatch(/no eggs left\n +at .*/);
    expect(output.slice(output.indexOf("failed   timer_thrown"))).toContain(`${at}:`);
    await until(NEW, undo);
  });

  test("in a tool is printed with file and line, and the caller gets no details", async () => {
    const { undo, at } = await until(NEW, () =>
      edit(/return \{ timer_name, status: .*remaining_seconds/, (text) => `throw new Error("no clock"); ${text}`),
    );
    const answer = JSON.stringify(await call("get_timer_status", { timer_name: "thrown" }));
    expect(answer).toContain("Something went wrong");
    expect(answer).not.toMatch(/no clock|\.ts/);
    const output = await launcher.printed("tool failed: Error: no clock");
    expect(output.slice(output.indexOf("no clock"))).toContain(`${at}:`);
    await until(NEW, undo);
  });
});

test("Ctrl-C ends everything, including the bundler", async () => {
  const family = await launcher.family();
  expect(family.some(({ command }) => command.includes("esbuild"))).toBe(true);
  launcher.interrupt();
  expect(await launcher.exited).toMatchObject({ exitCode: 0 });
  await gone(family);
  expect(launcher.output()).not.toMatch(/The service was stopped|EPIPE/);
});
