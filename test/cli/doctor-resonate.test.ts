import { randomBytes } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { checkResonate } from "../../cli/doctor/check-resonate.ts";
import { until } from "../../testing/stack/program.ts";
import { connectTo, releaseOf } from "../contract/server.ts";
import { type Resonate, startResonate } from "../support/resonate.ts";
import { nowhere, of, serve, serveNewerRelease, serveWithLateTimers } from "./doctor.ts";
import { type ProtectedResonate, startProtectedResonate } from "./protected-resonate.ts";

let guarded: ProtectedResonate;
let open: Resonate;
beforeAll(async () => {
  [guarded, open] = await Promise.all([startProtectedResonate(), startResonate({ own: true })]);
});
afterAll(async () => {
  await guarded?.[Symbol.asyncDispose]();
  await open?.[Symbol.asyncDispose]();
});

describe.concurrent("the Resonate server", () => {
  const check = (url: string | URL, token?: string, namespace = "prod/") =>
    checkResonate({ url: new URL(url), token, namespace });

  test("that requires tokens passes every check", async () => {
    const findings = await check(guarded.url, await guarded.token({ prefix: "prod/" }));
    expect(findings.filter(({ status }) => status !== "ok" && status !== "skipped")).toEqual([]);
    expect(of(findings, "Resonate token").detail).toMatch(/^for prod\/, until \d{4}-/);
  });

  test("that cannot be reached fails the check", async () => {
    expect(of(await check(await nowhere()), "Resonate")).toMatchObject({
      status: "failed",
      fix: expect.stringContaining("RESONATE_URL"),
    });
  });

  test("that speaks another version of the protocol fails the check", async () => {
    const data = "Unsupported protocol version '2026-04-01', supported versions: [\"2027-01-01\"]";
    await using other = await serve((_req, res) =>
      res.writeHead(400).end(JSON.stringify({ kind: "promise.get", head: { status: 400 }, data })),
    );
    expect(await check(other.url)).toEqual([
      { check: "Resonate", status: "failed", detail: data, fix: expect.stringContaining("compose.yaml") },
    ]);
  });

  test("that speaks the protocol but refuses the ids of job records fails the check of its release", async () => {
    await using newer = await serveNewerRelease(open.url);
    expect(of(await check(newer.url), "Resonate's release")).toMatchObject({
      status: "failed",
      detail: expect.stringContaining("must be prefixed by resonate:origin"),
      fix: expect.stringContaining("0.9.8"),
    });
    expect((await check(open.url)).filter(({ check }) => check === "Resonate's release")).toEqual([]);
  });

  test("that does not fire a timer by itself gives a warning", async () => {
    await using server = await startResonate();
    const release = await releaseOf(connectTo(server.url, async () => {}));
    await using before = await serveWithLateTimers(server.url);
    const url = release === "0.10" ? new URL(server.url) : before.url;
    const namespace = `late${randomBytes(8).toString("hex")}/`;
    const timers = async () =>
      of(await checkResonate({ url, token: undefined, namespace, maxDelay: 0 }), "Resonate's timers");
    const [id, timeoutAt] = [`${namespace}timer`, Date.now() + 5_000];
    await server.call("promise.create", { id, timeoutAt, param: {}, tags: { "resonate:timer": "true" } });
    expect(await timers()).toMatchObject({ status: "ok", detail: "none is overdue" });
    // The doctor knows the server's clock only to the second.
    await until("the deadline", () => Date.now() > timeoutAt + 1_000);
    expect(await timers()).toMatchObject({
      status: "warning",
      detail: "1 was overdue, and fired only when this check asked for it",
      fix: expect.stringContaining("0.10"),
    });
    expect(await timers()).toMatchObject({ status: "ok", detail: "none is overdue" });
  });

  test("is not mistaken for another server, or one too old for the protocol, at its address", async () => {
    await using other = await serve((_req, res) => res.writeHead(404).end("404 page not found"));
    expect(of(await check(other.url), "Resonate")).toMatchObject({
      status: "failed",
      detail: expect.stringContaining("no Resonate"),
    });
  });

  test("that accepts calls without a token fails the check of its protection", async () => {
    const findings = await check(open.url, await guarded.token({ prefix: "prod/" }));
    expect(of(findings, "Resonate's protection")).toMatchObject({
      status: "failed",
      fix: expect.stringContaining("PUBLICKEY"),
    });
  });

  const day = 86_400;
  const now = () => Math.floor(Date.now() / 1_000);

  test("refuses a token that has expired", async () => {
    const findings = await check(guarded.url, await guarded.token({ prefix: "prod/", exp: now() - day }));
    expect(of(findings, "Resonate token")).toMatchObject({
      status: "failed",
      fix: expect.stringContaining("npm run keys"),
    });
    expect(of(findings, "Resonate access").status).toBe("failed");
  });

  test("refuses a token signed with another key", async () => {
    await using other = await startProtectedResonate();
    const findings = await check(guarded.url, await other.token({ prefix: "prod/" }));
    expect(of(findings, "Resonate access")).toMatchObject({
      status: "failed",
      fix: expect.stringContaining("public.pem"),
    });
  });

  test("refuses a token of another namespace", async () => {
    const findings = await check(guarded.url, await guarded.token({ prefix: "test/" }));
    expect(of(findings, "Resonate token").detail).toBe("is for the namespace test/, not prod/");
    expect(of(findings, "Resonate access")).toMatchObject({
      status: "failed",
      fix: expect.stringContaining("RESONATE_NAMESPACE"),
    });
  });

  test.each([
    ["expires soon", { prefix: "prod/", exp: now() + 3 * day }],
    ["opens every namespace", { prefix: "" }],
    ["opens every namespace", { prefix: "prod/", role: "admin" }],
  ])("gets a warning for a token that %s", async (what, claims) => {
    const finding = of(await check(guarded.url, await guarded.token(claims)), "Resonate token");
    expect(finding.status).toBe("warning");
    expect(finding.detail.startsWith(what === "expires soon" ? "expires on" : what)).toBe(true);
  });

  test("gets an error for a malformed token", async () => {
    const findings = await check(guarded.url, randomBytes(16).toString("hex"));
    expect(of(findings, "Resonate token").detail).toBe("is not a JSON Web Token");
  });

  test.each([
    ["has no room for another connection", 503, "MAX_CONNECTIONS"],
    ["is behind a proxy that does not pass on /poll", 404, "/poll"],
  ])("that %s fails the check of its messages", async (_what, status, fix) => {
    await using before = await serve(async (req, res) => {
      if (req.url?.startsWith("/poll")) return res.writeHead(status).end();
      const body = await new Response(req as never).text();
      const answer = await fetch(guarded.url, { method: "POST", body });
      return res.writeHead(answer.status).end(await answer.text());
    });
    const findings = await check(before.url, await guarded.token({ prefix: "prod/" }));
    expect(of(findings, "Resonate's messages")).toMatchObject({ status: "failed", fix: expect.stringContaining(fix) });
    expect(of(findings, "Resonate access").status).toBe("ok");
  });

  test("behind a proxy that holds back its messages fails the check of its messages", async () => {
    await using before = await serve(async (req, res) => {
      if (req.url?.startsWith("/poll")) return; // the proxy holds back even the headers until the first message
      const answer = await fetch(guarded.url, { method: "POST", body: await new Response(req as never).text() });
      res.writeHead(answer.status).end(await answer.text());
    });
    const findings = await check(before.url, await guarded.token({ prefix: "prod/" }));
    expect(of(findings, "Resonate's messages")).toMatchObject({
      status: "failed",
      fix: expect.stringContaining("buffering"),
    });
  });
});
