/** `npm run dev` as an author uses it: in a project, edited while it runs. */
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

/** Saves a file whole: a build never reads half of it. */
async function save(path: string, text: string): Promise<void> {
  await writeFile(`${path}.new`, text);
  await rename(`${path}.new`, path);
}

/** Changes the one file below `tools/` where `text` stands; resolves to the file and the line. */
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
  throw new Error(`${text} stands nowhere below tools/`);
}

/** Printed once an edit is served. */
const NEW = "the new version (";
/** How often a line has been printed so far. */
const times = (text: string) => launcher.output().split(text).length - 1;

/** Runs `act` and waits until a line is printed once more. */
async function until<T>(text: string, act: () => Promise<T>): Promise<T> {
  const before = times(text);
  const result = await act();
  await launcher.printed(text, before + 1);
  return result;
}

// biome-ignore lint/suspicious/noExplicitAny: what a tool returns, looked at by expectations alone
async function call(name: string, args: object): Promise<any> {
  const { structuredContent, content, isError } = await client.callTool({ name, arguments: { ...args } });
  return isError ? content : structuredContent;
}

const description = async (name: string) => {
  const { tools } = await client.listTools();
  return tools.find((tool) => tool.name === name)?.description ?? "";
};

describe.sequential("npm run dev", () => {
  test("serves an edited definition; a call that waits meanwhile is not cut, and state is kept", async () => {
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

  test("runs an edited durable function, and jobs that sleep meanwhile go on", async () => {
    await call("set_timer", { timer_name: "asleep", seconds: 20 });
    const { undo } = await until(NEW, () => edit('return "complete";', () => 'return "edited";'));
    await call("set_timer", { timer_name: "fresh", seconds: 1 });
    const { results } = await call("await_result", { job_names: ["timer_fresh", "timer_asleep"] });
    expect(results).toMatchObject({ timer_fresh: "edited", timer_asleep: "edited" });
    await until(NEW, undo);
  });

  test("a step that was wrong is made anew once it is mended and the job is started again", async () => {
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

  test("shows what does not compile, by file and line, and the version before goes on", async () => {
    const { undo, at } = await until("The sources do not run", () =>
      edit('return "complete";', (text) => `${text} = ;`),
    );
    expect(await launcher.printed(`${at}:`)).toContain("The previous version goes on.");
    await call("set_timer", { timer_name: "meanwhile", seconds: 1 });
    const { results } = await call("await_result", { job_names: ["timer_meanwhile"] });
    expect(results).toEqual({ timer_meanwhile: "complete" });
    // What comes back is what runs already: there is nothing to replace.
    await undo();
    const { undo: again } = await until(NEW, () => edit('return "complete";', () => 'return "repaired";'));
    await until(NEW, again);
  });

  test("keeps the version before when the new one compiles and does not start", async () => {
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

describe.sequential("what is thrown", () => {
  test("in a durable function: message, file and line, in the terminal; the caller gets the message", async () => {
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

  test("in a tool: the same; the caller learns nothing of it", async () => {
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

test("Ctrl-C ends everything, what bundles too", async () => {
  const family = await launcher.family();
  expect(family.some(({ command }) => command.includes("esbuild"))).toBe(true);
  launcher.interrupt();
  expect(await launcher.exited).toMatchObject({ exitCode: 0 });
  await gone(family);
  expect(launcher.output()).not.toMatch(/The service was stopped|EPIPE/);
});
