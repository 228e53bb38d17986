/** The launcher serves the folder in which it runs, and knows nothing of the content. */
import { globSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { request } from "node:http";
import { expect, test, vi } from "vitest";
import { EDGE_ENVIRONMENT } from "../../cli/launcher/stack.ts";
import { PROTOCOL_VERSION } from "../../core/resonate/connection/protocol.ts";
import { freePort } from "../../testing/stack/port.ts";
import { run, until } from "../../testing/stack/program.ts";
import { launch } from "./launcher.ts";
import { folder, makeProject } from "./project.ts";

// Some of these tests start whole stacks, several at once.
vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 });

test("serves a foreign project with its edge, its worker, and its service with an option and variables", async () => {
  await using project = await makeProject();
  const options = { cwd: project.path, via: "node" as const, env: { MY_SETTING: "blue" } };
  {
    await using launcher = await launch({ ...options, args: ["--sample-orders"] });
    const output = await launcher.printed("Ready.");
    expect(output).toContain("orders of a made-up shop");
    expect(output).toContain("claude mcp add --transport http my-server ");
    expect(output).toContain("npx durable-mcp-edge start --config cursor");
    expect(await (await fetch(launcher.url)).json()).toEqual({ served: "by my edge" });
    const worker = await (await fetch(`http://127.0.0.1:${launcher.ports.worker}/health`)).json();
    expect(worker).toEqual({ ORDERS_URL: expect.stringMatching(/^http:.*\/orders$/), MY_SETTING: "blue" });
    expect(await (await fetch(worker.ORDERS_URL)).text()).toBe("orders");
    expect(output).not.toContain("No orders without");
  }
  await using launcher = await launch({ ...options, args: ["--memory"] });
  await launcher.printed("No orders without blue");
  expect(await (await fetch(`http://127.0.0.1:${launcher.ports.worker}/health`)).json()).toEqual({
    MY_SETTING: "blue",
  });

  await using help = await launch({ ...options, args: ["--help"] });
  await help.exited;
  expect(help.output()).toMatch(/--sample-orders +orders of a made-up shop/);
  expect(help.output()).not.toContain("weather");
});

/** The status of the answer to a request with this Host header. */
function statusFor(port: number, host: string): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const asked = request({ host: "127.0.0.1", port, path: "/ready", headers: { host } });
    asked
      .on("response", (answer) => resolve(answer.resume().statusCode))
      .on("error", reject)
      .end();
  });
}

test("the environment overrides the settings that npm start would choose", async () => {
  const health = await freePort();
  const env = {
    ALLOWED_HOSTS: "alias.test,127.0.0.1",
    HEALTH_PORT: `${health}`,
    DRAIN_SECONDS: "1",
    LOG_LEVEL: "debug",
    RESONATE_LOCAL_TOKEN: "a-secret-of-this-machine",
  };
  await using data = await folder();
  const ports = { edge: await freePort(), resonate: await freePort() };
  const args = ["--port", ports.edge, "--resonate-port", ports.resonate, "--data", data.path].map(String);
  await using launcher = await launch({ args, via: "node", env, ports: false });
  await launcher.printed("Ready.");
  expect(await statusFor(ports.edge, "alias.test")).toBe(200);
  expect(await statusFor(ports.edge, "localhost")).toBe(403);
  await until("the worker to be connected", async () => {
    const answer = await fetch(`http://127.0.0.1:${health}/health`);
    return ((await answer.json()) as { connected: boolean }).connected;
  });
  // The embedded server demands the secret, which edge and worker have presented above, as the doctor does below.
  const call = { kind: "promise.get", head: { corrId: "1", version: PROTOCOL_VERSION }, data: { id: "x" } };
  const bare = await fetch(`http://127.0.0.1:${ports.resonate}`, { method: "POST", body: JSON.stringify(call) });
  expect(bare.status).toBe(401);
  await using doctor = run("cli/main.ts", {
    args: ["doctor", "--data", data.path],
    env: { ...env, RESONATE_URL: "" },
  });
  expect(await doctor.exited, doctor.output()).toMatchObject({ exitCode: 0 });
  // The log level holds for every part, and the lines of that level are printed.
  expect(launcher.output()).toMatch(/worker +ready/);
});

/** Modules of the edge that read variables when they are first needed. */
const LOADED_LATER = [
  "core/jobs/worker-report.ts",
  "features/operators/operating.ts",
  "features/files/location-in-workers.ts",
  "features/trace/export-span.ts",
];

test("the edge gets every variable that its configuration reads", async () => {
  const declared = globSync("features/*/config.ts");
  const paths = ["functions/config.ts", "functions/auth/auth-config.ts", ...declared, ...LOADED_LATER];
  const sources = await Promise.all(paths.map((path) => readFile(path, "utf8")));
  const read = sources.flatMap((source) =>
    [...source.matchAll(/(?:^ +|[{;] )([A-Z][A-Z_]+)\??: (?!undefined)/gm)].map(([, name]) => name),
  );
  // These are set by the launcher itself, are not variables, or concern objects that exist only in an account.
  const others = [
    "RESONATE_URL",
    "RATE_LIMITER",
    "LISTENER",
    "CALLER",
    "CALLBACKS",
    "ASSETS",
    "FILES",
    "RESONATE",
    "RESONATE_PUBLIC",
    "RESONATE_TOKENS",
    "RUNNER",
    "RUNS_IN",
  ];
  expect(new Set([...EDGE_ENVIRONMENT, ...others])).toEqual(new Set(read));
});
