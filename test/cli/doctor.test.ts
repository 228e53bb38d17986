import { createHash } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { checkAuth, checkEdge, checkReady } from "../../cli/doctor/check-edge.ts";
import { checkMcp } from "../../cli/doctor/check-mcp.ts";
import { checkWorker } from "../../cli/doctor/check-worker.ts";
import type { Finding } from "../../cli/doctor/finding.ts";
import { startEdge } from "../../cli/launcher/local-edge.ts";
import { run, until } from "../../testing/stack/program.ts";
import { startWorker } from "../../testing/stack/worker-process.ts";
import { startGate } from "../support/gate.ts";
import { type Stack, startStack } from "../support/stack.ts";
import { nowhere, of, serve } from "./doctor.ts";

vi.setConfig({ testTimeout: 40_000, maxConcurrency: 6 });

let stack: Stack;
beforeAll(async () => {
  stack = await startStack({ own: true });
});
afterAll(() => stack?.[Symbol.asyncDispose]());

async function doctor(args: string[], env: Record<string, string> = {}) {
  const program = run("cli/main.ts", {
    args: ["doctor", ...args],
    env: { RESONATE_URL: "", RESONATE_TOKEN: "", ...env },
  });
  const { exitCode } = await program.exited;
  return { exitCode, output: program.output() };
}

describe.concurrent("a healthy stack", () => {
  test("passes every check, and the exit code says so", async () => {
    const healthUrl = stack.workers[0]?.process.healthUrl ?? "";
    const { RESONATE_URL = "" } = stack.resonate.env;
    const args = ["--url", stack.origin, "--worker-url", healthUrl, "--json"];
    const { exitCode, output } = await doctor(args, { RESONATE_URL, RESONATE_NAMESPACE: stack.namespace });
    const { healthy, findings } = JSON.parse(output) as { healthy: boolean; findings: Finding[] };
    expect(findings.filter(({ status }) => status !== "ok")).toEqual([
      // The local server of the edge sends no Date header.
      { check: "edge's clock", status: "skipped", detail: "the answer has no date" },
    ]);
    expect(findings.map(({ check }) => check)).toEqual(
      expect.arrayContaining([
        "edge",
        "edge to Resonate",
        "authentication",
        "MCP",
        "one-second timer",
        "Resonate",
        "worker",
      ]),
    );
    expect([exitCode, healthy]).toEqual([0, true]);
  });

  test("does not undo the exit code of what failed before, such as a part of a deployment", async () => {
    const failed = join(await mkdtemp(join(tmpdir(), "failed-")), "failed.mjs");
    await writeFile(failed, "process.exitCode = 1;");
    await using program = run("cli/main.ts", { args: ["doctor", "--url", stack.origin], imports: [failed] });
    expect([await program.exited, program.output()]).toMatchObject([
      { exitCode: 1 },
      expect.stringContaining("Nothing has failed"),
    ]);
    await rm(dirname(failed), { recursive: true });
  });

  test("is reported in readable lines, including the checks that were skipped", async () => {
    const { exitCode, output } = await doctor(["--url", stack.origin]);
    expect(exitCode).toBe(0);
    expect(output).toMatch(/^ok +one-second timer +came through in \d+\.\d s$/m);
    expect(output).toMatch(/^skipped +worker +give --worker-url/m);
    expect(output).toContain("Nothing has failed");
  });
});

describe.concurrent("arguments", () => {
  test.each([
    ["a malformed address", ["--url", "example.org"]],
    ["an unknown mode", ["--url", "https://example.org", "--auth", "basic"]],
  ])("with %s are refused", async (_what, args) => {
    const { exitCode, output } = await doctor(args);
    expect([exitCode, output]).toEqual([2, expect.stringContaining("Usage: npm run doctor")]);
  });
});

describe.concurrent("the edge", () => {
  test("that cannot be reached fails the command, with a fix", async () => {
    const url = await nowhere();
    const { exitCode, output } = await doctor(["--url", url.href]);
    expect(exitCode).toBe(1);
    expect(output).toMatch(/^FAILED +edge +http:\S+ cannot be reached: ECONNREFUSED\n +→ .*npm run deploy/m);
    expect(output).toMatch(/^skipped +MCP/m);
  });

  test("is not mistaken for another server at its address", async () => {
    await using other = await serve((_req, res) => res.writeHead(200).end("<html>"));
    expect(of(await checkEdge(other.url), "edge")).toMatchObject({
      status: "failed",
      fix: expect.stringContaining("/mcp"),
    });
  });

  test("whose configuration is wrong: the finding names the variable", async () => {
    await using edge = await startEdge({ port: 0, bindings: { RESONATE_URL: "resonate" } });
    const findings = [...(await checkEdge(new URL(edge.url))), await checkReady(new URL(edge.url))];
    const failures = findings.filter(({ status }) => status === "failed");
    expect(failures[0]?.detail).toContain("RESONATE_URL");
    expect(failures[0]?.fix).toContain("edge.env");
  });

  test("that cannot reach Resonate fails the check, with a fix", async () => {
    const { href } = await nowhere();
    await using edge = await startEdge({ port: 0, bindings: { RESONATE_URL: href, AUTH_MODE: "none" } });
    const url = new URL(edge.url);
    expect(await checkReady(url)).toMatchObject({ status: "failed", fix: expect.stringContaining("RESONATE_URL") });
    const findings = await checkMcp({ url: new URL("/mcp", url), token: undefined, wait: 1 });
    expect(of(findings, "MCP").status).toBe("ok");
    expect(of(findings, "one-second timer")).toMatchObject({
      status: "failed",
      detail: expect.stringContaining("Resonate"),
    });
  });

  test.each([
    ["ahead of", 90_000],
    ["behind", -90_000],
  ])("whose clock is %s the doctor's by 90 s fails the check", async (words, ms) => {
    await using late = await serve((_req, res) =>
      res.writeHead(200, { Date: new Date(Date.now() + ms).toUTCString() }).end('{"status":"ok"}'),
    );
    const finding = of(await checkEdge(late.url), "edge's clock");
    expect(finding).toMatchObject({ status: "failed", fix: expect.stringContaining("NTP") });
    expect(finding.detail).toMatch(new RegExp(`^(89|90|91) s ${words}`));
  });

  test("without a worker behind it fails the check of the timer", async () => {
    const bindings = { ...stack.resonate.env, RESONATE_NAMESPACE: "idle/", RESONATE_GROUP: "idle", AUTH_MODE: "none" };
    await using edge = await startEdge({ port: 0, bindings });
    const findings = await checkMcp({ url: new URL("/mcp", edge.url), token: undefined, wait: 2 });
    const finding = of(findings, "one-second timer");
    expect(finding).toMatchObject({
      status: "failed",
      detail: expect.stringContaining("no worker"),
      fix: expect.stringContaining("RESONATE_GROUP"),
    });
  });
});

describe.concurrent("authentication", () => {
  /** Further edges of the stack, with the authentication that `bindings` configures. */
  const oauth = { AUTH_MODE: "oauth", ALLOWED_HOSTS: "127.0.0.1" };
  const edgeWith = (bindings: Record<string, string>) =>
    startEdge({
      port: 0,
      bindings: {
        ...stack.resonate.env,
        RESONATE_NAMESPACE: stack.namespace,
        RESONATE_GROUP: stack.namespace.replace("/", ""),
        ...bindings,
      },
    });

  test("that is missing fails the check when bearer tokens are expected", async () => {
    expect(await checkAuth(new URL(stack.origin), "bearer")).toMatchObject({
      status: "failed",
      detail: expect.stringContaining("everyone"),
      fix: expect.stringContaining("AUTH_MODE"),
    });
  });

  test("by static tokens passes the check where they are expected, and a good token is accepted", async () => {
    const sha256 = createHash("sha256").update("secret-of-doctor").digest("hex");
    const BEARER_TOKENS = JSON.stringify([{ name: "doctor", sha256 }]);
    await using edge = await edgeWith({ AUTH_MODE: "bearer", BEARER_TOKENS });
    const origin = new URL(edge.url);
    expect((await checkAuth(origin, "bearer")).status).toBe("ok");
    expect((await checkAuth(origin, undefined)).status).toBe("ok");
    expect((await checkAuth(origin, "none")).status).toBe("failed");
    expect((await checkAuth(origin, "oauth")).status).toBe("failed");
    const url = new URL("/mcp", origin);
    expect(of(await checkMcp({ url, token: "secret-of-doctor", wait: 20 }), "one-second timer").status).toBe("ok");
    expect(of(await checkMcp({ url, token: "wrong", wait: 20 }), "MCP")).toMatchObject({
      status: "failed",
      fix: expect.stringContaining("BEARER_TOKENS"),
    });
    expect(of(await checkMcp({ url, token: undefined, wait: 20 }), "MCP").status).toBe("skipped");
  });

  test("by OAuth is checked up to the authorization server's metadata", async () => {
    let issuer = "";
    await using server = await serve((req, res) => {
      const isMetadata = req.url === "/.well-known/openid-configuration";
      res.writeHead(isMetadata ? 200 : 404).end(JSON.stringify({ issuer }));
    });
    await using edge = await edgeWith({ ...oauth, OAUTH_ISSUER: server.url.origin });
    issuer = server.url.origin;
    const found = await checkAuth(new URL(edge.url), "oauth");
    expect(found).toMatchObject({ status: "ok", detail: expect.stringContaining(issuer) });
    expect((await checkAuth(new URL(edge.url), "bearer")).status).toBe("failed");
    issuer = "https://example.org";
    expect(await checkAuth(new URL(edge.url), "oauth")).toMatchObject({
      status: "failed",
      fix: expect.stringContaining("OAUTH_ISSUER"),
    });
  });

  test("by OAuth fails the check when the authorization server cannot be reached", async () => {
    const { origin } = await nowhere();
    await using edge = await edgeWith({ ...oauth, OAUTH_ISSUER: origin });
    expect(await checkAuth(new URL(edge.url), "oauth")).toMatchObject({
      status: "failed",
      detail: expect.stringContaining(origin),
      fix: expect.stringContaining("OAUTH_ISSUER"),
    });
  });

  // As with a proxy that drops paths, or that calls the edge by another host name.
  test.each([
    ["is missing", 404, {}],
    ["is about another resource", 200, { resource: "https://example.org/mcp" }],
    ["names no authorization server", 200, { resource: "SELF/mcp" }],
  ])("by OAuth fails the check when the metadata %s", async (_what, status, metadata) => {
    await using edge = await serve((req, res) => {
      const self = `http://${req.headers.host}`;
      if (req.url === "/metadata") return res.writeHead(status).end(JSON.stringify(metadata).replace("SELF", self));
      return res.writeHead(401, { "WWW-Authenticate": `Bearer resource_metadata="${self}/metadata"` }).end();
    });
    expect(await checkAuth(edge.url, "oauth")).toMatchObject({
      status: "failed",
      detail: expect.stringContaining("metadata"),
      fix: expect.stringContaining("OAUTH_"),
    });
  });
});

describe.concurrent("the worker", () => {
  test("that cannot be reached fails the check, with a fix", async () => {
    expect(of(await checkWorker(await nowhere()), "worker")).toMatchObject({
      status: "failed",
      fix: expect.stringContaining("8081"),
    });
  });

  test("is not mistaken for another server at its address", async () => {
    const { detail } = of(await checkWorker(new URL(stack.origin)), "worker");
    expect(detail).toMatch(/^something else answers/);
  });

  test("that lost its connection to Resonate fails the check", async () => {
    await using gate = await startGate(stack.resonate.url);
    await using worker = await startWorker({ RESONATE_URL: gate.url, RESONATE_GROUP: "lonely" });
    await gate.close();
    const check = async () => of(await checkWorker(new URL(worker.healthUrl)), "worker");
    await until("the loss to be seen", async () => (await check()).status === "failed");
    expect(await check()).toMatchObject({
      detail: expect.stringContaining("not connected"),
      fix: expect.stringContaining("RESONATE_URL"),
    });
  });

  test("that is stopping gives a warning", async () => {
    await using worker = await startWorker({
      ...stack.resonate.env,
      RESONATE_GROUP: "leaving",
      RESONATE_NAMESPACE: "leaving/",
      WEATHER_API_URL: stack.archive.url,
    });
    // A job with a hanging request keeps the worker from ending at once.
    const month = { latitude: 47.6, longitude: -122.3, year: 2014, month: 1 };
    stack.archive.control.inject({ fault: { kind: "hang" }, month: "2014-01" });
    const id = "leaving/weather_data_47.6_-122.3_2014_1";
    await stack.resonate.start({ id, func: "weather_data", args: month, group: "leaving" });
    await worker.waitForLog("weather_data_47.6_-122.3_2014_1", "job started");
    worker.signal("SIGTERM");
    await until(
      "it to say so",
      async () => of(await checkWorker(new URL(worker.healthUrl)), "worker").status === "warning",
    );
  });
});
