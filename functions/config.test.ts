import { describe, expect, test, vi } from "vitest";
import { createApp } from "./app.ts";
import { readConfig } from "./config.ts";

const MINIMAL = { AUTH_MODE: "none", RESONATE_URL: "http://127.0.0.1:9" };

describe("bindings", () => {
  test("have defaults, except the Resonate server's address and the way of authentication", () => {
    expect(readConfig(MINIMAL)).toEqual({
      RESONATE_URL: MINIMAL.RESONATE_URL,
      RESONATE_GROUP: "workers",
      RESONATE_NAMESPACE: "",
      WAIT_SECONDS: 4,
      CONFIRM_ARGUMENTS: "on",
      VIEW_LINKS: "on",
      EVENT_ERRORS: "sep",
      LOG_LEVEL: "info",
      RATE_LIMIT: 6_000,
      MAX_JOBS: 0,
      MAX_STORED_BYTES: 0,
      MAX_STREAMS: 2_000,
      auth: { AUTH_MODE: "none" },
      isOperated: false,
    });
  });

  test("set limits where callers are authenticated, unless the limits are 0", () => {
    const tokens = [{ name: "ada", sha256: "0".repeat(64) }];
    const env = { ...MINIMAL, AUTH_MODE: "bearer", BEARER_TOKENS: JSON.stringify(tokens) };
    for (const unset of [{}, { RATE_LIMIT: "", MAX_JOBS: "", MAX_STREAMS: "" }, { RATE_LIMIT: " ", MAX_JOBS: "\t" }]) {
      expect(readConfig({ ...env, ...unset })).toMatchObject({ RATE_LIMIT: 600, MAX_JOBS: 1_000, MAX_STREAMS: 32 });
    }
    expect(readConfig({ ...env, RATE_LIMIT: "0", MAX_JOBS: "3" })).toMatchObject({ RATE_LIMIT: 0, MAX_JOBS: 3 });
  });

  test("need no address for a Resonate object, which the address of another server replaces", () => {
    const RESONATE = { idFromName: () => ({}), get: () => ({ fetch }) };
    expect(readConfig({ AUTH_MODE: "none", RESONATE })).toMatchObject({ RESONATE, RESONATE_URL: "http://resonate" });
    expect(readConfig({ ...MINIMAL, RESONATE })).toEqual(readConfig(MINIMAL));
  });

  test.each([
    [{}, "RESONATE_URL"],
    [{ RESONATE_URL: "127.0.0.1:8001" }, "RESONATE_URL"],
    [{ RESONATE_URL: "ftp://127.0.0.1" }, "RESONATE_URL"],
    [{ ...MINIMAL, RESONATE_GROUP: "default" }, "RESONATE_GROUP"],
    [{ ...MINIMAL, RESONATE_GROUP: "a@b" }, "RESONATE_GROUP"],
    [{ ...MINIMAL, RESONATE_NAMESPACE: "a:b" }, "RESONATE_NAMESPACE"],
    [{ ...MINIMAL, RESONATE_NAMESPACE: "a~" }, "RESONATE_NAMESPACE"],
    [{ ...MINIMAL, TASK_KEY: "short" }, "TASK_KEY"],
    [{ ...MINIMAL, LOG_LEVEL: "loud" }, "LOG_LEVEL"],
    [{ ...MINIMAL, RATE_LIMIT: "-1" }, "RATE_LIMIT"],
    [{ ...MINIMAL, WAIT_SECONDS: "46" }, "WAIT_SECONDS"],
    [{ ...MINIMAL, CONFIRM_ARGUMENTS: "no" }, "CONFIRM_ARGUMENTS"],
  ])("%j are refused, by name", (env, name) => {
    expect(() => readConfig(env)).toThrow(name);
  });
});

describe("an edge", () => {
  const identity = { info: { name: "edge", title: "Edge", version: "1.0.0" }, description: "", instructions: "" };
  const app = createApp({ jobs: [], tools: [], identity });

  test("reports a misconfiguration in its responses and in its log", async () => {
    using log = vi.spyOn(console, "error").mockImplementation(() => {});
    for (const path of ["/mcp", "/ready", "/health"]) {
      const response = await app.fetch(new Request(`https://edge.example${path}`), { RESONATE_URL: "nonsense" });
      expect([response.status, await response.json()]).toEqual([
        500,
        { error: expect.stringMatching(/misconfigured.*RESONATE_URL/) },
      ]);
    }
    expect(log).toHaveBeenCalledWith(expect.stringMatching(/^\{"level":"error".*RESONATE_URL/));
  });

  test.each([
    [undefined, "edge.example", 503],
    ["edge.example", "edge.example", 503],
    ["edge.example", "evil.example", 403],
    ["127.0.0.1, localhost", "localhost:8787", 503],
    ["127.0.0.1, localhost", "evil.example", 403],
  ])("with ALLOWED_HOSTS %s, addressed as %s, answers %i", async (hosts, host, status) => {
    const env = { ...MINIMAL, LOG_LEVEL: "silent", ...(hosts !== undefined && { ALLOWED_HOSTS: hosts }) };
    const response = await app.fetch(new Request(`http://${host}/ready`, { headers: { host } }), env);
    expect(response.status).toBe(status); // 503: admitted, but there is no Resonate server
  });
});
