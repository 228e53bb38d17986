/** The package for a user who has nothing else: a project, made and installed outside this checkout. */
import { mkdtemp, readdir, readFile, readlink, realpath, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { validate } from "dockerfile-utils";
import { execa } from "execa";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startChild } from "../../cli/process/child.ts";
import { freePort } from "../../testing/stack/port.ts";
import { run, untilProgram, watch } from "../../testing/stack/program.ts";
import { startUpstream } from "../../testing/stack/upstream.ts";
import { startPlatform } from "../cli/platform.ts";
import { descendants, gone } from "../launcher/launcher.ts";
import { currentClient } from "../support/clients.ts";
import { EVERYTHING } from "../wrap/servers.ts";
import { type Scaffold, scaffold } from "./scaffold.ts";

let project: Scaffold;
beforeAll(async () => {
  project = await scaffold("my-server");
}, 300_000);
afterAll(() => project?.[Symbol.asyncDispose]());

const text = (path: string) => readFile(join(project.root, path), "utf8");
const lines = async (path: string) => (await text(path)).trimEnd().split("\n").length;

/** All files below a folder of the project, without installed and built ones. */
async function files(folder = "."): Promise<string[]> {
  const entries = await readdir(join(project.root, folder), { withFileTypes: true });
  const found = await Promise.all(
    entries
      .filter(({ name }) => !["node_modules", "vendor", ".build"].includes(name))
      .map((entry) => (entry.isDirectory() ? files(join(folder, entry.name)) : [join(folder, entry.name)])),
  );
  return found.flat().sort();
}

describe("the package", () => {
  test("is JavaScript with types and contains no tool of this repository", async () => {
    const listed = await project.run(
      "tar",
      "-tzf",
      join("vendor", (await readdir(join(project.root, "vendor")))[0] ?? ""),
    );
    const names = listed.trim().split("\n");
    expect(names.filter((name) => /weather|\/timer|\/test\//i.test(name))).toEqual([]);
    const sources = names.filter((name) => /(?<!\.d)\.ts$|\.test\./.test(name));
    expect(sources.filter((name) => !name.startsWith("package/dist/cli/template/"))).toEqual([]);
    const pages = names.filter((name) => name.startsWith("package/dist/pages/"));
    expect(pages).toEqual(
      expect.arrayContaining(["index.html", "job.js", "style.css"].map((file) => `package/dist/pages/${file}`)),
    );
    const isBundled = (name: string) => /^package\/dist\/(pages|edge)\//.test(name);
    for (const name of names.filter((name) => name.endsWith(".js") && !isBundled(name))) {
      expect(names).toContain(name.replace(/\.js$/, ".d.ts"));
      expect(names).toContain(`${name}.map`);
    }
  });

  test("is completely inside the project, without links to other places", async () => {
    const root = await realpath(project.root);
    const installed = join(root, "node_modules/durable-mcp-edge");
    expect(await realpath(installed)).toBe(installed);
    for (const entry of await readdir(join(root, "node_modules"), { recursive: true, withFileTypes: true })) {
      if (!entry.isSymbolicLink()) continue;
      const target = resolve(entry.parentPath, await readlink(join(entry.parentPath, entry.name)));
      expect(target.startsWith(`${root}/`), `${entry.name} → ${target}`).toBe(true);
    }
    const checkout = process.cwd();
    for (const name of await readdir(installed, { recursive: true })) {
      if (!/\.(js|ts|json|map)$/.test(name) || (await stat(join(installed, name))).isDirectory()) continue;
      expect(await readFile(join(installed, name), "utf8"), name).not.toContain(checkout);
    }
  });
});

describe("the project", () => {
  test("is small: a tool of thirty lines, and little around it", async () => {
    expect(await files()).toEqual([
      ...[
        ".dockerignore",
        ".gitignore",
        ".npmrc",
        "Dockerfile",
        "README.md",
        "container/wrangler.toml",
        "edge/index.ts",
      ],
      ...[
        "package-lock.json",
        "package.json",
        "tools/index.ts",
        "tools/runs.ts",
        "tools/wait-for-site/wait-for-site.run.ts",
      ],
      ...["tools/wait-for-site/wait-for-site.test.ts", "tools/wait-for-site/wait-for-site.ts", "tsconfig.build.json"],
      ...["tsconfig.json", "worker.ts", "wrangler.toml"],
    ]);
    const tool = ["wait-for-site.ts", "wait-for-site.run.ts"].map((name) => `tools/wait-for-site/${name}`);
    const own = (await files()).filter((name) => !/README|lock|ignore$/.test(name));
    const count = async (names: string[]) => (await Promise.all(names.map(lines))).reduce((sum, n) => sum + n, 0);
    expect(await count(tool)).toBeLessThanOrEqual(30);
    expect(await count(own.filter((name) => name.endsWith(".ts") && !name.endsWith(".test.ts")))).toBeLessThanOrEqual(
      60,
    );
    // The largest part is the configuration of Workers, with four lines for each Durable Object.
    expect(await count(own)).toBeLessThanOrEqual(248);
  });

  test("has a Dockerfile without lint errors, with the same Node release that the project installs", async () => {
    const dockerfile = await text("Dockerfile");
    expect(validate(dockerfile)).toEqual([]);
    const { optionalDependencies } = JSON.parse(await text("package.json"));
    const images = Object.values(optionalDependencies).map((version) => `${version}-slim`);
    expect(new Set(dockerfile.match(/(?<=^FROM node:)\S+(?=@sha256:[0-9a-f]{64}(?: |$))/gm))).toEqual(new Set(images));
  });

  test("installs in production only packages that run there, and none that bundle, compile or test", async () => {
    const { packages } = JSON.parse(await text("package-lock.json")) as {
      packages: Record<string, { dev?: boolean; optional?: boolean; devOptional?: boolean }>;
    };
    // The Dockerfile omits development and optional dependencies, and packages that only these need.
    const isInstalled = (name: string) => {
      const { dev, optional, devOptional } = packages[name] ?? {};
      return name !== "" && !dev && !optional && !devOptional;
    };
    const names = Object.keys(packages).filter(isInstalled);
    expect(names).toContain("node_modules/durable-mcp-edge");
    const needless = /wrangler|workerd|esbuild|typescript|vite|miniflare|node_modules\/node$/;
    expect(names.filter((name) => needless.test(name))).toEqual([]);
    expect(names.length).toBeLessThan(100);
  });

  test("is typed: code that does not fit a definition does not compile", async () => {
    const wrong = `import { implement } from "durable-mcp-edge";
import { waitForSite } from "./wait-for-site/wait-for-site.ts";
export const a = implement(waitForSite, async (ctx, { url }) => ({ url, status: await ctx.step("x", () => url) }));
`;
    const asked = `import { createClient } from "durable-mcp-edge/client";
import { waitForSite } from "./wait-for-site/wait-for-site.ts";
const jobs = createClient({ url: "http://127.0.0.1/mcp", tools: { waitForSite } });
export const status: string = (await jobs.wait(await jobs.start("waitForSite", { url: "http://127.0.0.1/" }))).status;
`;
    await writeFile(join(project.root, "tools/asked.ts"), asked);
    await writeFile(join(project.root, "tools/wrong.ts"), wrong);
    const error = await project.run("npx", "tsc").then(() => expect.fail("it compiles"), String);
    expect(error).toMatch(/asked\.ts\(4,.*'number' is not assignable to type 'string'/);
    expect(error).toMatch(/tools\/wrong\.ts\(3,.*\n?.*'string' is not assignable to type 'number'/s);
    await writeFile(join(project.root, "tools/asked.ts"), "export {};\n");
    await writeFile(join(project.root, "tools/wrong.ts"), "export {};\n");
  });

  test("gets a further tool, refuses a second one of that name, and passes its own tests", async () => {
    const added = await project.run("npx", "durable-mcp-edge", "new", "--tool", "daily-report");
    expect(added).toContain("tools/daily-report/daily-report.run.ts");
    expect(await text("tools/index.ts")).toContain("[waitForSite, dailyReport];");
    expect(await text("tools/runs.ts")).toContain("[waitForSiteRun, dailyReportRun];");
    const again = project.run("npx", "durable-mcp-edge", "new", "--tool", "daily-report");
    await expect(again).rejects.toThrow("\ntools/daily-report is there already.");
    expect(await project.run("npm", "test")).toMatch(/Tests .*2 passed/);
  });

  test("bundles for Cloudflare with all its modules, and compiles its worker", async () => {
    const said = await project.run("npm", "run", "deploy", "--", "--dry-run");
    expect(said).toContain("Jobs run in the account's own Workers");
    for (const name of [
      "LISTENER (Listener)",
      "CALLER (CallerObject)",
      "RESONATE (ResonateObject)",
      "RUNNER (RunnerObject)",
    ]) {
      expect(said).toContain(`env.${name}`);
    }
    expect(said).toMatch(/\bobject-server-\w+\.js[\s\S]*\brunner-server-\w+\.js[\s\S]*\bruns-\w+\.js/);
    expect(Number(/gzip: ([\d.]+) KiB/.exec(said)?.[1])).toBeLessThan(700);
    await project.run("npm", "run", "build");
    expect((await files("dist")).filter((name) => name.includes("test"))).toEqual([]);
  });

  test("is deployed with its worker in a container if the account has Containers", async () => {
    await using platform = await startPlatform();
    platform.hasContainers = true;
    const image = "docker.io/example/my-server-worker:1";
    const deploy = async () => {
      const env = { ...project.env, ...platform.env };
      const all = ["run", "deploy", "--", "--image", image, "--no-wait"];
      return (await execa("npm", all, { cwd: project.root, env, extendEnv: false, all: true })).all;
    };
    expect(await deploy()).toContain(`Jobs run in a container of the account, from ${image}.`);
    expect(platform.uploads).toEqual(["my-server", "my-server-worker", "my-server"]);
    const bound = (worker: string) =>
      platform.workers
        .get(worker)
        ?.bindings.filter(({ type }) => type === "durable_object_namespace")
        .map(({ name, class_name, script_name }) => `${name} ${class_name} ${script_name ?? ""}`.trim());
    expect(bound("my-server")).toContain("WORKER WorkerContainer my-server-worker");
    expect(bound("my-server-worker")).toEqual(["RESONATE ResonateObject my-server", "WORKER WorkerContainer"]);
    expect(platform.applications).toMatchObject([{ configuration: { image } }]);
  });
});

/** Kills a process, unless it has already ended with another one. */
function kill(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}

describe("the server", () => {
  beforeAll(async () => {
    const run = "tools/wait-for-site/wait-for-site.run.ts";
    await writeFile(join(project.root, run), (await text(run)).replace("30 * SECOND", "3 * SECOND"));
    await project.run("npm", "run", "build");
  });

  /** Runs `npm start`, and resolves when it is ready. */
  async function start(ports: string[]) {
    // With a short lease, the jobs of a killed worker soon go to another one.
    const env = { ...project.env, LEASE_SECONDS: "2" };
    project.typed.add("npm start");
    const program = watch(startChild("npm", ["start", "--", ...ports], { env, grace: 10_000, cwd: project.root }));
    await untilProgram(program, "the server is ready", () => /^Ready/m.test(program.output()));
    return program;
  }

  test("is killed completely during a call, and the job's result is collected after the next start", async () => {
    const [edge, resonate, worker] = [await freePort(), await freePort(), await freePort()];
    const ports = ["--port", edge, "--resonate-port", resonate, "--worker-port", worker].map(String);
    const url = `http://127.0.0.1:${edge}/mcp`;
    await using site = await startUpstream();
    site.answers({ fault: "silence" });
    {
      await using program = await start(ports);
      const client = await currentClient.connect(url);
      expect((await client.listTools()).map(({ name }) => name)).toEqual([
        ...[
          "wait_for_site",
          "daily_report",
          "probe_status",
          "await_result",
          "answer_question",
          "cancel_job",
          "list_jobs",
          "forget_jobs",
          "schedule_job",
          "job_card",
          "answer_for_user",
        ],
      ]);
      const page = await fetch(new URL("/jobs", url));
      expect([page.status, await page.text()]).toEqual([200, expect.stringContaining("/assets/jobs.js")]);
      expect((await fetch(new URL("/assets/jobs.js", url))).status).toBe(200);
      // This call never gets an answer, so the test does not wait for it.
      void client.callTool("wait_for_site", { url: site.url }).catch(() => {});
      await site.waitForRequests(1);
      const family = await descendants(program.pid);
      // Except for the shell and npm, every running program belongs to the project.
      const root = await realpath(project.root);
      const foreign = family.filter(({ command }) => !command.includes(root) && !/^(npm|sh|node .*npm)/.test(command));
      expect(foreign).toEqual([]);
      expect(family.length).toBeGreaterThan(5);
      for (const { pid } of family) kill(pid);
      await gone(family);
      await client.close();
    }
    site.answers({ status: 204 });
    // This time with the worker as it runs in production.
    const manifest = JSON.parse(await text("package.json"));
    const production = { ...manifest, "durable-mcp-edge": { worker: "dist/worker.js" } };
    await writeFile(join(project.root, "package.json"), JSON.stringify(production));
    await using program = await start(ports);
    expect((await descendants(program.pid)).some(({ command }) => command.includes("dist/worker.js"))).toBe(true);
    await using client = await currentClient.connect(url);
    const { content: listed } = await client.callTool("list_jobs", {});
    const [{ job_name }] = listed.jobs;
    const { content } = await client.callTool("await_result", { job_names: [job_name] });
    expect(content).toEqual({ results: { [job_name]: { url: site.url, status: 204 } }, errors: {}, running: [] });
    expect(site.requests.length).toBe(2);
    process.kill(-program.pid, "SIGINT"); // to the whole process group, as Ctrl-C does
    await program.exited;
  });
});

describe("in one account", () => {
  /** Runs `wrangler dev` with only the project's configuration, until it serves. Disposing kills it with SIGKILL. */
  async function serve(port: number): Promise<AsyncDisposable> {
    const args = ["wrangler", "dev", "--port", `${port}`, "--inspector-port", `${await freePort()}`];
    const options = { env: project.env, grace: 5_000, cwd: project.root };
    const program = watch(startChild("npx", [...args, "--var", "AUTH_MODE:none"], options));
    await untilProgram(program, "wrangler serves", () => program.output().includes("Ready on"));
    return {
      async [Symbol.asyncDispose]() {
        const family = await descendants(program.pid);
        expect(family.filter(({ command }) => /worker\.[jt]s|server\/node\/process/.test(command))).toEqual([]);
        for (const { pid } of family) kill(pid);
        await gone(family);
      },
    };
  }

  test("wrangler dev runs a job without any other process, and the job goes on after a kill -9 of everything", async () => {
    const port = await freePort();
    const url = `http://127.0.0.1:${port}/mcp`;
    await using site = await startUpstream();
    site.answers({ status: 503 });
    {
      await using _ = await serve(port);
      await using client = await currentClient.connect(url);
      void client.callTool("wait_for_site", { url: site.url }).catch(() => {});
      await site.waitForRequests(1);
    }
    site.answers({ status: 204 });
    await using _ = await serve(port);
    await using client = await currentClient.connect(url);
    const [{ job_name }] = (await client.callTool("list_jobs", {})).content.jobs;
    const { content } = await client.callTool("await_result", { job_names: [job_name], timeout_seconds: 60 });
    expect(content).toEqual({ results: { [job_name]: { url: site.url, status: 204 } }, errors: {}, running: [] });
  });
});

describe("the package alone in an empty folder", () => {
  let folder: string;
  const command = () => join(folder, "node_modules/durable-mcp-edge/dist/cli/main.js");
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "alone-"));
    const [tarball = ""] = await readdir(join(project.root, "vendor"));
    const options = ["--prefer-offline", "--no-audit", "--no-fund", "--ignore-scripts"];
    const args = ["install", ...options, join(project.root, "vendor", tarball)];
    await execa("npm", args, { cwd: folder, env: project.env, extendEnv: false });
  });
  afterAll(() => rm(folder, { recursive: true, force: true }));

  test("installs no package that bundles, compiles or deploys", async () => {
    const installed = await readdir(join(folder, "node_modules"));
    expect(installed).toContain("workerd");
    expect(installed.filter((name) => /^(wrangler|miniflare|esbuild|typescript)$/.test(name))).toEqual([]);
  });

  test.each([
    ["Node", [process.execPath, EVERYTHING, "stdio"], "get-sum", { a: 2, b: 3 }, "The sum of 2 and 3 is 5."],
    ["Python", ["python3", resolve("test/package/greeter.py")], "greet", { name: "Ada" }, "Hello, Ada."],
  ])("wraps a server written for %s", async (_language, server, tool, args, answer) => {
    const names = ["--port", "--worker-port", "--resonate-port"];
    const ports = await Promise.all(names.map(async (name) => [name, `${await freePort()}`]));
    await using program = run(command(), { cwd: folder, args: ["wrap", ...ports.flat(), "--", ...server] });
    const address = () => /MCP endpoint +(\S+)/.exec(program.output())?.[1];
    const url = await untilProgram(program, "the address is printed", address);
    expect(program.output()).not.toContain("workerd");
    await using client = await currentClient.connect(url);
    const { text } = await client.callTool(tool, args);
    expect(text).toContain(answer);
    // A program that uses the package's client.
    const asking = `import { createClient } from "durable-mcp-edge/client";
await using jobs = createClient({ url: "${url}", tools: {} });
console.log(JSON.stringify(await jobs.wait(await jobs.start("${tool}", ${JSON.stringify(args)}))));`;
    await writeFile(join(folder, "asking.mjs"), asking);
    expect((await execa(process.execPath, ["asking.mjs"], { cwd: folder })).stdout).toContain(answer);
    // Two commands need only a running server: `wait` waits for a job, `doctor` checks the server.
    const typed = (...args: string[]) => execa(process.execPath, [command(), ...args], { cwd: folder, reject: false });
    const { jobs } = (await client.callTool("list_jobs", {})).content as { jobs: { job_name: string }[] };
    const waited = await typed("wait", jobs[0]?.job_name ?? "", "--url", url);
    expect([waited.exitCode, waited.stdout]).toEqual([0, expect.stringContaining(answer)]);
    const { origin } = new URL(url);
    const checked = await typed("doctor", "--url", origin);
    expect([checked.exitCode, checked.stdout]).toEqual([0, expect.stringContaining(`answers at ${origin}`)]);
    program.signal("SIGINT");
    expect(await program.exited).toMatchObject({ exitCode: 0 });
  });

  test("says in which folder to run a command that needs a project", async () => {
    const program = run(command(), { cwd: folder, args: ["start"] });
    expect(await program.exited).toMatchObject({ exitCode: 1 });
    expect(program.output()).toMatch(/has no .*Run this in the folder of your server\.|which runs the worker/);
  });

  test("names the required Node release when it runs on an older one", async () => {
    const older = "data:text/javascript,Object.defineProperty(process.versions,'node',{value:'20.20.2'})";
    const args = ["--import", older, command(), "wrap", "--", "true"];
    const { exitCode, stderr } = await execa(process.execPath, args, { reject: false });
    expect([exitCode, stderr]).toEqual([1, "durable-mcp-edge needs Node 22.19 or newer. This is Node 20.20.2."]);
  });
});

test("every command of the tutorial was run by these tests", async () => {
  const tutorial = await readFile("docs/tutorial.md", "utf8");
  const blocks = [...tutorial.matchAll(/```sh\n([\s\S]*?)```/g)].map(([, block = ""]) => block.trim());
  const commands = blocks.flatMap((block) => block.split("\n").map((line) => line.replace(/ *#.*/, "")));
  const spoken = [...tutorial.matchAll(/`(npm [^`]*)`/g)].map(([, command = ""]) => command);
  // Commands that precede the project, run endlessly (tested in test/launcher/dev.test.ts), or need Cloudflare.
  const others = ["npm ci", "cd ../my-server", "npm run dev", "npm run deploy"];
  expect([...commands, ...spoken].filter((command) => ![...project.typed, ...others].includes(command))).toEqual([]);
  expect(commands.length).toBeGreaterThan(5);
});
