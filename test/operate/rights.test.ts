/** Only operators reach the pages under `/operate`. They are known by name, for as long as their tokens are listed. */
import { createHash } from "node:crypto";
import { request } from "node:http";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { type EdgeProcess, startEdge } from "../../cli/launcher/local-edge.ts";
import { callerOf } from "../../core/author/caller.ts";
import { Seal } from "../../functions/auth/seal.ts";
import { until } from "../../testing/stack/program.ts";
import { claimsOf, startAuthorizationServer } from "../auth/authorization-server.ts";
import { bearer, bearerBindings } from "../auth/support.ts";

vi.setConfig({ testTimeout: 120_000 });

const TOKEN = "operator-token-of-ada";
const sha256 = createHash("sha256").update(TOKEN).digest("hex");
const VIEW_KEY = "v".repeat(40);
const RESONATE_URL = "http://127.0.0.1:9";
const callers = bearerBindings({ bob: "static-token-of-bob" });
const OPERATORS = { ...callers, RESONATE_URL, VIEW_KEY, OPERATOR_TOKENS: JSON.stringify([{ name: "ada", sha256 }]) };
const PATHS = ["overview", "jobs", "job?job=timer_tea", "audit-log", "action?n=1", "metrics"];
const SAME = { "sec-fetch-site": "same-origin" };

/** The status of a request, which may have headers that `fetch` forbids. */
function ask(url: string, { method = "GET", headers = {}, body = "" } = {}): Promise<number> {
  return new Promise((resolve, reject) => {
    const sent = request(url, { method, headers }, (response) => {
      response.resume();
      resolve(response.statusCode ?? 0);
    });
    sent.on("error", reject).end(body);
  });
}

const act = { method: "POST", body: JSON.stringify({ do: "stop-starts" }) };
const json = { "content-type": "application/json" };

let edge: EdgeProcess;
beforeAll(async () => {
  const others = JSON.stringify([{ name: "eve", sha256: "0".repeat(64) }]);
  const otherIsolates = [{ ...OPERATORS, OPERATOR_TOKENS: others }];
  edge = await startEdge({ port: 0, bindings: OPERATORS, otherIsolates });
});
afterAll(() => edge?.[Symbol.asyncDispose]());

const at = (path: string) => `${edge.url}/operate/${path}`;

test("without an operator's token nobody sees or does anything", async () => {
  const forged = `operator=${"A".repeat(120)}`;
  const session = await fetch(`${edge.url}/pages/session`, {
    method: "POST",
    headers: { ...bearer("static-token-of-bob"), ...SAME },
  });
  const bobs = session.headers.get("set-cookie")?.split(";")[0] ?? "";
  expect(bobs).toContain("session=");
  const attempts: [string, string, object][] = [
    ...PATHS.map((path): [string, string, object] => [`${path} without a token`, at(path), {}]),
    ["a caller's token", at("overview"), { headers: bearer("static-token-of-bob") }],
    ["an unknown token", at("overview"), { headers: bearer("guessed") }],
    ["the hash for the token", at("overview"), { headers: bearer(sha256) }],
    ["an empty token", at("overview"), { headers: { authorization: "Bearer " } }],
    ["another scheme", at("overview"), { headers: { authorization: `Basic ${btoa(`ada:${TOKEN}`)}` } }],
    ["the token in the query", at(`overview?token=${TOKEN}`), {}],
    ["the token as a cookie", at("overview"), { headers: { ...SAME, cookie: `operator=${TOKEN}` } }],
    ["a forged session", at("overview"), { headers: { ...SAME, cookie: forged } }],
    ["a caller's session", at("overview"), { headers: { ...SAME, cookie: bobs } }],
    [
      "a caller's session as an operator's",
      at("overview"),
      { headers: { ...SAME, cookie: bobs.replace("session=", "operator=") } },
    ],
    [
      "a caller's session with another's host",
      at("overview"),
      { headers: { ...SAME, cookie: bobs, host: "localhost" } },
    ],
    ["an action without a token", at("act"), { ...act, headers: json }],
    ["an action with a caller's token", at("act"), { ...act, headers: { ...json, ...bearer("static-token-of-bob") } }],
    ["an action from another page", at("act"), { ...act, headers: { ...json, origin: "https://evil.example" } }],
    ["an action as a form", at("act"), { ...act, headers: { "content-type": "text/plain" } }],
    ["arguments of a job", at("job?job=timer_tea&values=1"), { headers: bearer("static-token-of-bob") }],
    [
      "signing in with a caller's token",
      at("session"),
      { method: "POST", headers: { ...SAME, ...bearer("static-token-of-bob") } },
    ],
    [
      "signing in from another page",
      at("session"),
      { method: "POST", headers: { "sec-fetch-site": "cross-site", ...bearer(TOKEN) } },
    ],
    ["signing in without a page", at("session"), { method: "POST", headers: bearer(TOKEN) }],
    ["callers", at("callers"), { headers: bearer("static-token-of-bob") }],
    ["an additional slash", `${edge.url}/operate/overview/`, {}],
    ["a slash in the middle", `${edge.url}/operate//overview`, {}],
    ["dots", `${edge.url}/operate/x/../overview`, {}],
    ["an encoded slash", `${edge.url}/operate%2Foverview`, {}],
    ["another case", `${edge.url}/Operate/overview`, {}],
    ["HEAD", at("overview"), { method: "HEAD" }],
    ["PUT", at("act"), { ...act, method: "PUT" }],
    ["a claim to be local", at("overview"), { headers: { host: "127.0.0.1", "x-operate": "local" } }],
  ];
  expect(attempts.length).toBeGreaterThanOrEqual(30);
  const outcomes = await Promise.all(attempts.map(async ([what, url, how]) => [what, await ask(url, how)] as const));
  expect(outcomes.filter(([, status]) => ![400, 401, 403, 404].includes(status))).toEqual([]);

  const own = await fetch(at("overview"), { headers: bearer(TOKEN) });
  expect([own.status, ((await own.json()) as { who: string }).who]).toEqual([200, "ada"]);
  const auditLog = await fetch(at("audit-log"), { headers: bearer(TOKEN) });
  expect(await auditLog.json()).toEqual({ entries: [] });
});

test("a browser stays signed in as an operator for its own pages, until the token is no longer listed", async () => {
  const signed = await fetch(at("session"), { method: "POST", headers: { ...SAME, ...bearer(TOKEN) } });
  const header = signed.headers.get("set-cookie") ?? "";
  expect([signed.status, header]).toEqual([204, expect.stringMatching(/HttpOnly.*SameSite=Strict/i)]);
  const cookie = header.split(";")[0] ?? "";
  expect(await ask(at("overview"), { headers: { ...SAME, cookie } })).toBe(200);
  expect(await ask(at("overview"), { headers: { "sec-fetch-site": "cross-site", cookie } })).toBe(401);
  expect(await ask(at("overview"), { headers: { cookie } })).toBe(401);
  // Beside the edge is one whose list has another operator.
  expect(await ask(`${edge.otherUrls[0]}/operate/overview`, { headers: { ...SAME, cookie } })).toBe(401);
});

test("the links of a caller whom an operator blocks are void, also in a browser that has opened one", async () => {
  const linked = { job: "timer_tea", caller: await callerOf("bob", "bob") };
  const path = `${edge.url}/view/${await new Seal(VIEW_KEY).close("link", linked, Date.now() + 600_000)}`;
  const opened = await fetch(path, { redirect: "manual" });
  const cookie = opened.headers.get("set-cookie")?.split(";")[0] ?? "";
  const look = () => ask(`${edge.url}/pages/link/x?name=timer_tea`, { headers: { ...SAME, cookie } });
  // The link is accepted, but there is no Resonate server that could find the job.
  expect([opened.status, (await look()) >= 500]).toEqual([303, true]);
  const block = { ...act, body: JSON.stringify({ do: "block", caller: "bob" }) };
  expect(await ask(at("act"), { ...block, headers: { ...json, ...bearer(TOKEN) } })).toBe(200);
  await until("the link to be void", async () => (await ask(path)) === 404, 30_000);
  expect(await look()).toBe(401);
});

test("a caller who is an operator by an OAuth scope is none if the configuration or another operator blocks the caller", async () => {
  await using server = await startAuthorizationServer([]);
  const bindings = {
    AUTH_MODE: "oauth",
    OAUTH_ISSUER: server.issuer,
    OAUTH_OPERATE_SCOPE: "operate",
    ALLOWED_HOSTS: "127.0.0.1",
    RESONATE_URL,
    VIEW_KEY,
    OPERATOR_TOKENS: OPERATORS.OPERATOR_TOKENS,
    BLOCKED_CALLERS: "mallory",
  };
  await using scoped = await startEdge({ port: 0, bindings });
  const at = (path: string) => `${scoped.url}/operate/${path}`;
  const tokenOf = (scope: string, sub = "eve") =>
    server.sign(claimsOf(server.issuer, `${scoped.url}/mcp`, { sub, scope }));
  const eve = bearer(await tokenOf("mcp operate"));
  expect(await ask(at("overview"), { headers: bearer(await tokenOf("mcp")) })).toBe(403);
  expect(await ask(at("overview"), { headers: eve })).toBe(200);
  expect(await ask(at("overview"), { headers: bearer(await tokenOf("mcp operate", "mallory")) })).toBe(403);
  // By its name in the log: nobody knows the subject of a caller that has started no job.
  const { label } = await callerOf(JSON.stringify([server.issuer, "eve"]));
  const asked = (what: string) => ({ ...act, body: JSON.stringify({ do: what, caller: label }) });
  expect(await ask(at("act"), { ...asked("block"), headers: { ...json, ...bearer(TOKEN) } })).toBe(200);
  await until("eve to be no operator", async () => (await ask(at("overview"), { headers: eve })) === 403, 30_000);
  expect(await ask(at("act"), { ...asked("unblock"), headers: { ...json, ...eve } })).toBe(403);
  expect(await ask(at("overview"), { headers: bearer(TOKEN) })).toBe(200);
});

test("the pages are off unless an operator is configured, and a local operator is only this machine's user", async () => {
  const bindings = { AUTH_MODE: "none", RESONATE_URL };
  const local = { ...bindings, OPERATE: "local" };
  await using off = await startEdge({ port: 0, bindings, otherIsolates: [local, { ...local, ...callers }] });
  const [localUrl, guardedUrl] = off.otherUrls;
  expect(await ask(`${off.url}/operate`)).toBe(404);
  expect(await ask(`${off.url}/operate/overview`)).toBe(404);
  const overview = `${localUrl}/operate/overview`;
  expect(await ask(overview)).toBe(200);
  expect(await ask(overview, { headers: { "sec-fetch-site": "cross-site" } })).toBe(403);
  expect(await ask(overview, { headers: { "x-forwarded-for": "203.0.113.5" } })).toBe(404);
  expect(await ask(overview, { headers: { host: "tunnel.example" } })).toBe(404);
  expect(await ask(`${guardedUrl}/operate/overview`)).toBe(404);
});
