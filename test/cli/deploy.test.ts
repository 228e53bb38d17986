// The deploy command against a fake of the platform's API that stores what is deployed: the whole command with the project's own
// wrangler where the two meet, otherwise in this process with a stand-in that does what wrangler does with the platform.

import { createHash } from "node:crypto";
import { mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { execa } from "execa";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { runWith } from "../../cli/commands/deploy.ts";
import { type Platform, startPlatform } from "./platform.ts";
import { wranglerOn } from "./wrangler.ts";

let platform: Platform;
beforeAll(async () => {
  platform = await startPlatform();
  for (const [name, value] of Object.entries(platform.env)) vi.stubEnv(name, value);
});
afterAll(async () => {
  vi.unstubAllEnvs();
  await platform[Symbol.asyncDispose]();
});

interface Outcome {
  exitCode: string | number | undefined;
  output: string;
}

/** Runs the command, which runs wrangler. */
const deployWithWrangler = async (...args: string[]): Promise<Outcome> => {
  const all = ["cli/main.ts", "deploy", ...args];
  const options = { env: platform.env, all: true, reject: false, input: "something else\n" } as const;
  const { exitCode, all: output } = await execa(process.execPath, all, options);
  return { exitCode, output };
};

/** Runs the command in this process, with the stand-in for wrangler, and without a terminal. */
const deploy = async (...args: string[]): Promise<Outcome> => {
  const lines: string[] = [];
  const log = vi.spyOn(console, "log").mockImplementation((line) => void lines.push(line));
  try {
    await runWith(wranglerOn(platform), args);
    return { exitCode: process.exitCode ?? 0, output: lines.join("\n") };
  } catch (error) {
    return { exitCode: 1, output: [...lines, (error as Error).message].join("\n") };
  } finally {
    log.mockRestore();
    process.exitCode = undefined;
  }
};
const NAME = "durable-mcp-edge";
const edge = () => platform.workers.get(NAME);
const binding = (name: string, worker = edge()) => worker?.bindings.find((binding) => binding.name === name);

test("a first deployment is complete, has limits with --paid, and creates no token without a terminal", async () => {
  const { exitCode, output } = await deployWithWrangler("--name", "paid", "--paid", "--no-wait");
  expect([exitCode, output]).toEqual([0, expect.stringContaining("Nobody may call it yet")]);
  expect(output).not.toContain("dme_");
  const deployment = platform.workers.get("paid");
  const modules = Object.keys(deployment?.modules ?? {}).map((path) => path.replace(/-[\dA-Z]{8}(?=\.js$)/, ""));
  const lazyModules = ["answer-with-sdk", "composition", "object-server", "runner-server", "runs", "source-maps"];
  expect(modules).toEqual(expect.arrayContaining(["index", ...lazyModules].map((name) => `${name}.js`)));
  const objects = deployment?.bindings.filter(({ type }) => type === "durable_object_namespace");
  expect(objects?.map(({ name, class_name }) => `${name} ${class_name}`).sort()).toEqual([
    "CALLER CallerObject",
    "LISTENER Listener",
    "RESONATE ResonateObject",
    "RUNNER RunnerObject",
  ]);
  expect(deployment?.limits).toEqual({ cpu_ms: 5_000, subrequests: 10_000 });
  // The temporary configuration for wrangler is removed.
  expect((await readdir(".")).filter((file) => file.startsWith(".wrangler-"))).toEqual([]);
});

test("it creates the first caller, shows the caller's token, and deploys only its hash", async () => {
  const { exitCode, output } = await deploy("--caller", "ada", "--no-wait");
  expect(exitCode).toBe(0);
  const [token = ""] = /dme_[\w-]+/.exec(output) ?? [];
  const sha256 = createHash("sha256").update(token).digest("hex");
  expect(binding("AUTH_MODE")?.text).toBe("bearer");
  expect(JSON.parse(binding("BEARER_TOKENS")?.text ?? "[]")).toEqual([{ name: "ada", sha256 }]);
  expect(output).toContain(
    "claude mcp add --transport http durable-mcp-edge https://durable-mcp-edge.me.workers.dev/mcp",
  );
});

test("jobs run in the account's Workers if it has no Containers or there is no image; --dry-run uploads nothing", async () => {
  const refused = await deploy("--container", "--no-wait");
  expect([refused.exitCode, refused.output]).toEqual([1, expect.stringContaining("the account has no Containers")]);
  expect(edge()?.limits).toBeUndefined();
  platform.hasContainers = true;
  const before = platform.uploads.length;
  const dry = await deployWithWrangler("--dry-run");
  expect([dry.exitCode, dry.output]).toEqual([0, expect.stringContaining("env.RESONATE (ResonateObject)")]);
  expect(dry.output).toContain("own Workers: as they did before");
  const imageless = await deploy("--container", "--no-wait");
  expect([imageless.exitCode, imageless.output]).toEqual([1, expect.stringContaining("no Docker runs here")]);
  expect([binding("RUNS_IN")?.text, platform.uploads.length]).toEqual(["workers", before]);
});

test("with an image jobs run in a container; an existing caller gets no second token, and set-ups have a place for it", async () => {
  const callers = binding("BEARER_TOKENS")?.text;
  const { exitCode, output } = await deploy("--image", "docker.io/example/worker:1", "--caller", "ada", "--no-wait");
  expect([exitCode, output]).toEqual([0, expect.stringContaining("in a container of the account")]);
  expect([output, binding("BEARER_TOKENS")?.text]).toEqual([expect.not.stringContaining("dme_"), callers]);
  expect(output).toContain('durable-mcp-edge.me.workers.dev/mcp --header "Authorization: Bearer YOUR-TOKEN"');
  // The plan with Containers also allows limits.
  expect(edge()?.limits).toEqual({ cpu_ms: 5_000, subrequests: 10_000 });
  // The two Workers bind each other's objects, so the edge is deployed before and after the container's Worker.
  expect(platform.uploads.slice(-3)).toEqual([NAME, `${NAME}-worker`, NAME]);
  expect(binding("WORKER")).toMatchObject({ class_name: "WorkerContainer", script_name: `${NAME}-worker` });
  expect(platform.applications).toMatchObject([{ configuration: { image: "docker.io/example/worker:1" } }]);
  expect(binding("RESONATE", platform.workers.get(`${NAME}-worker`))).toMatchObject({ script_name: NAME });
  expect(binding("RUNS_IN")?.text).toBe("container");
});

test("an existing container gets new functions before the edge can start them", async () => {
  const before = platform.uploads.length;
  const { exitCode, output } = await deploy("--image", "docker.io/example/worker:2", "--no-wait");
  expect([exitCode, output]).toEqual([0, expect.stringContaining("in a container of the account")]);
  expect(platform.uploads.slice(before)).toEqual([`${NAME}-worker`, NAME]);
});

test("an existing container stays when the platform fails, or the deployment cannot have one", async () => {
  const before = platform.uploads.length;
  const refused = async (reason: string) => {
    const { exitCode, output } = await deploy("--no-wait");
    expect([exitCode, output]).toEqual([1, expect.stringContaining(reason)]);
    const isThere = platform.workers.has(`${NAME}-worker`);
    expect([isThere, binding("RUNS_IN")?.text, platform.uploads.length]).toEqual([true, "container", before]);
  };
  platform.fault = 503;
  await refused("does not say whether the account has Containers: 503");
  delete platform.fault;
  platform.hasContainers = false;
  await refused("and the account has no Containers (the paid plan has), or this login may not use them. Correct that");
  platform.hasContainers = true;
  edge()?.bindings.push({ name: "ENCRYPTION_KEYS", type: "secret_text" });
  await refused("it needs ENCRYPTION_KEYS as the edge has it");
  edge()?.bindings.pop();
});

test("workers elsewhere and operators get tokens beside existing ones; the container stays until --no-container", async () => {
  const { output } = await deploy("--workers-elsewhere", "gpu", "--operator=ada", "--no-wait");
  const [, token = ""] =
    /RESONATE_URL=https:\/\/durable-mcp-edge.me.workers.dev\/resonate RESONATE_TOKEN=(dme_\S+) npm run start:worker/.exec(
      output,
    ) ?? [];
  const sha256 = createHash("sha256").update(token).digest("hex");
  expect(binding("RESONATE_PUBLIC")?.text).toBe("1");
  expect(JSON.parse(binding("RESONATE_TOKENS")?.text ?? "")).toEqual([{ name: "gpu", sha256 }]);
  expect(JSON.parse(binding("OPERATOR_TOKENS")?.text ?? "")).toMatchObject([{ name: "ada" }]);
  expect(output).toContain("stays as it is");
  expect(binding("RUNS_IN")?.text).toBe("container");

  await deploy("--workers-elsewhere", "office", "--no-container", "--no-wait");
  expect([binding("RUNS_IN")?.text, platform.workers.has(`${NAME}-worker`)]).toEqual(["workers", false]);
  expect(binding("WORKER")).toBeUndefined();
  expect(JSON.parse(binding("RESONATE_TOKENS")?.text ?? "")).toMatchObject([
    { name: "gpu", sha256 },
    { name: "office" },
  ]);
  expect(JSON.parse(binding("OPERATOR_TOKENS")?.text ?? "")).toMatchObject([{ name: "ada" }]);
});

test("a first deployment whose secrets name a Resonate server elsewhere gets no container", async () => {
  const file = join(await mkdtemp(join(tmpdir(), "deploy-")), "edge.env");
  await writeFile(file, "RESONATE_URL=https://resonate.example.com\nAUTH_MODE=none\n");
  const { exitCode, output } = await deploy("--name", "new", "--secrets-file", file, "--dry-run");
  await rm(dirname(file), { recursive: true });
  const says = "Jobs run in the workers of the server that RESONATE_URL names.";
  expect([exitCode, output]).toEqual([0, expect.stringContaining(says)]);
});

test("a container's Worker that deploy:container created stays beside a Resonate server elsewhere", async () => {
  const binding = { name: "RESONATE_URL", type: "secret_text" };
  const worker = { modules: {}, bindings: [binding], migrations: undefined, limits: undefined };
  platform.workers.set(`${NAME}-worker`, worker);
  edge()?.bindings.push(binding);
  const { exitCode, output } = await deploy("--no-wait");
  expect(platform.workers.get(`${NAME}-worker`)).toBe(worker);
  expect([exitCode, output]).toEqual([
    0,
    expect.stringContaining("Jobs run in the workers of the server that RESONATE_URL names."),
  ]);
  platform.workers.delete(`${NAME}-worker`);
  edge()?.bindings.splice(edge()?.bindings.findIndex(({ name }) => name === "RESONATE_URL") ?? 0, 1);
});

test("over an edge that stores jobs in another form it deploys only with --other-form", async () => {
  const form = binding("JOBS_FORM");
  if (!form) throw new Error("the deployment has no JOBS_FORM");
  expect(form.text).toBe("1");
  form.text = "2";
  const before = platform.uploads.length;
  const refused = await deploy("--no-wait");
  expect([refused.exitCode, refused.output]).toEqual([
    1,
    expect.stringContaining(
      "what is deployed keeps jobs in form 2, and this version in form 1: they must not run side",
    ),
  ]);
  expect([binding("JOBS_FORM")?.text, platform.uploads.length]).toEqual(["2", before]);
  expect((await deploy("--other-form", "--no-wait")).exitCode).toBe(0);
  expect([binding("JOBS_FORM")?.text, platform.uploads.length]).toEqual(["1", before + 1]);
});

/** Runs the command at a terminal and types `answer` when `question` appears. */
async function deployAtTerminal(question: string, answer: string, ...args: string[]) {
  const line = [process.execPath, "cli/main.ts", "deploy", ...args].map((word) => `'${word}'`).join(" ");
  const running = execa("script", ["-qefc", line, "/dev/null"], { env: platform.env, all: true, reject: false });
  let shown = "";
  let isAsked = false;
  running.all.on("data", (data: Buffer) => {
    shown += data;
    if (isAsked || !shown.includes(question)) return;
    isAsked = true;
    running.stdin.write(`${answer}\r`);
  });
  const { exitCode } = await running;
  return { exitCode, output: shown, isAsked };
}

test("at a terminal it creates a caller and asks once about workers elsewhere; a location cannot change later", async () => {
  const name = ["--name", "asked"];
  const asks = "take jobs, too (a private network, a GPU)? [y/N] ";
  const where = ["--jurisdiction", "eu", "--location", "weur"];
  const { exitCode, output, isAsked } = await deployAtTerminal(asks, "y", ...name, ...where, "--no-wait");
  expect([exitCode, isAsked]).toEqual([0, true]);
  const tokens = [...new Set(output.match(/dme_[\w-]+/g))].map((token) =>
    createHash("sha256").update(token).digest("hex"),
  );
  const deployment = platform.workers.get("asked");
  const [caller] = JSON.parse(binding("BEARER_TOKENS", deployment)?.text ?? "[]");
  const [machine] = JSON.parse(binding("RESONATE_TOKENS", deployment)?.text ?? "[]");
  expect(tokens).toEqual([caller.sha256, machine.sha256]);
  expect([machine.name, binding("RESONATE_PUBLIC", deployment)?.text]).toEqual(["machine", "1"]);

  expect(await deployAtTerminal(asks, "y", ...name, "--no-wait")).toMatchObject({ exitCode: 0, isAsked: false });
  const again = platform.workers.get("asked");
  expect(["JURISDICTION", "LOCATION"].map((each) => binding(`RESONATE_${each}`, again)?.text)).toEqual(["eu", "weur"]);

  const before = platform.uploads.length;
  const moved = await deploy(...name, "--no-wait", "--jurisdiction", "us");
  expect([moved.exitCode, moved.output]).toEqual([1, expect.stringContaining("in the jurisdiction eu")]);
  const late = await deploy("--location", "apac", "--no-wait");
  expect([late.exitCode, late.output]).toEqual([1, expect.stringContaining("without a location of its own")]);
  expect((await deploy("--location", "mars")).output).toContain("--location needs one of wnam");
  expect(platform.uploads.length).toBe(before);
});

test("at a terminal it names the Worker that a removal would break, and asks one question before it removes", async () => {
  // A Worker of another project that uses objects of this one.
  const binding = { name: "THEIRS", type: "durable_object_namespace", class_name: "Listener", script_name: "asked" };
  platform.workers.set("another", { modules: {}, bindings: [binding], migrations: undefined, limits: undefined });
  const removed = await deployAtTerminal("Type its name to continue: ", "asked", "--name", "asked", "--remove");
  expect([removed.exitCode, platform.workers.has("asked")]).toEqual([0, false]);
  expect(removed.output).toContain("another uses it, and will break");
  expect(removed.output.match(/are you sure|\? /gi)).toBeNull();
});

test("--remove asks for the name, and keeps the edge if the container's Worker, which uses its objects, stays", async () => {
  platform.hasContainers = true;
  await deploy("--image", "docker.io/example/worker:1", "--no-wait");
  const both = () => [platform.workers.has(NAME), platform.workers.has(`${NAME}-worker`)];
  const { exitCode, output } = await deployWithWrangler("--remove");
  expect([exitCode, output, both()]).toEqual([1, expect.stringContaining("Nothing was removed"), [true, true]]);
  platform.stays = `${NAME}-worker`;
  expect([(await deploy("--remove", "--yes")).exitCode, both()]).toEqual([1, [true, true]]);
  delete platform.stays;
  expect([(await deploy("--remove", "--yes")).exitCode, both()]).toEqual([0, [false, false]]);
});

test("a first deployment whose container fails has shown the caller's token, which no later one creates again", async () => {
  platform.hasContainers = true;
  platform.refuses = (worker) => worker === "half-worker";
  const first = ["--name", "half", "--caller", "ada", "--image", "docker.io/example/worker:1", "--no-wait"];
  const { exitCode, output } = await deploy(...first);
  delete platform.refuses;
  expect([exitCode, platform.workers.has("half-worker")]).toEqual([1, false]);
  const sha256 = createHash("sha256")
    .update(/dme_[\w-]+/.exec(output)?.[0] ?? "")
    .digest("hex");
  const callers = binding("BEARER_TOKENS", platform.workers.get("half"))?.text ?? "[]";
  expect(JSON.parse(callers)).toEqual([{ name: "ada", sha256 }]);

  // The next one fails as well if the edge cannot be bound to the container, after both were deployed.
  platform.refuses = (worker) => worker === "half" && platform.uploads.includes("half-worker");
  expect((await deploy(...first)).exitCode).toBe(1);
  delete platform.refuses;
  expect(platform.uploads.slice(-2)).toEqual(["half", "half-worker"]);
});

test("the stand-in for wrangler leaves the platform as wrangler does", async () => {
  const left = async (run: typeof deploy) => {
    await using own = await startPlatform();
    own.hasContainers = true;
    const shared = platform;
    platform = own;
    vi.stubEnv("CLOUDFLARE_API_BASE_URL", own.env.CLOUDFLARE_API_BASE_URL);
    const outputs = [
      await run("--caller", "ada", "--image", "docker.io/example/worker:1", "--no-wait"),
      await run("--operator", "eve", "--no-container", "--no-wait"),
    ];
    platform = shared;
    vi.stubEnv("CLOUDFLARE_API_BASE_URL", shared.env.CLOUDFLARE_API_BASE_URL);
    const secret = ({ name, text, ...others }: { name: string; text?: string }) => ({
      name,
      text: text?.replace(/[\da-f]{64}/g, "HASH"),
      ...others,
    });
    const workers = [...own.workers].map(([name, { bindings, limits }]) => ({
      name,
      bindings: bindings.map(secret).sort((a, b) => a.name.localeCompare(b.name)),
      limits,
    }));
    const { uploads, applications } = own;
    const codes = outputs.map(({ exitCode }) => exitCode);
    return { codes, workers, uploads, applications: applications.map(({ configuration: { image } }) => image) };
  };
  expect(await left(deploy)).toEqual(await left(deployWithWrangler));
});
