/** Which tokens are accepted, how others are refused, and how often the authorization server is asked about them. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type EdgeProcess, startEdge } from "../../cli/launcher/local-edge.ts";
import { serveHttp } from "../../testing/stack/http-server.ts";
import { until } from "../../testing/stack/program.ts";
import { ownGroup } from "../../testing/stack/worker-process.ts";
import { type AuthorizationServer, claimsOf, now, startAuthorizationServer } from "../auth/authorization-server.ts";
import { bearer, bearerBindings, listTools } from "../auth/support.ts";
import { type Resonate, startResonate } from "../support/resonate.ts";
import { rpcHeaders, rpcMessage } from "../support/rpc.ts";
import { call, names, send } from "./support.ts";

let server: AuthorizationServer;
let resonate: Resonate;
let edge: EdgeProcess;
let url: string;
beforeAll(async () => {
  server = await startAuthorizationServer(["ada"]);
  resonate = await startResonate();
  edge = await serve({});
  url = `${edge.url}/mcp`;
});
afterAll(async () => {
  await edge?.[Symbol.asyncDispose]();
  await resonate?.[Symbol.asyncDispose]();
  await server?.[Symbol.asyncDispose]();
});

const AUDIENCE = "https://mcp.example/mcp";

function serve(bindings: Record<string, string>, entry?: string): Promise<EdgeProcess> {
  const urls = { PUBLIC_URL: "https://mcp.example", OAUTH_AUDIENCE: AUDIENCE };
  const base = { AUTH_MODE: "oauth", OAUTH_ISSUER: server.issuer, ...urls };
  return startEdge({ port: 0, entry, bindings: { ...resonate.env, ...ownGroup().env, ...base, ...bindings } });
}

const claims = (changes?: object) => claimsOf(server.issuer, AUDIENCE, changes);

const statusOf = async (changes: object, header = {}, at = url) =>
  (await listTools(at, bearer(await server.sign(claims(changes), header)))).status;

describe("a token", () => {
  test.each([[null], [0], [7], [""], [["ada"]], [{ sub: "ada" }], [true]])(
    "whose subject is %j is refused: a caller is a non-empty string",
    async (sub) => expect(await statusOf({ sub })).toBe(401),
  );

  test.each(["logout+jwt", "secevent+jwt", "dpop+jwt", "id+jwt", "application/logout+jwt", "", 1])(
    "of type %j is refused",
    async (typ) => expect(await statusOf({}, { typ })).toBe(401),
  );

  test.each(["at+jwt", "AT+JWT", "application/at+jwt", "JWT", "jwt", undefined])(
    "of type %j is accepted",
    async (typ) => expect(await statusOf({}, { typ })).toBe(200),
  );

  test("that does not follow RFC 9068 is refused where OAUTH_TOKENS demands it", async () => {
    await using strict = await serve({ OAUTH_TOKENS: "rfc9068" });
    const at = (changes: object, header = {}) => statusOf(changes, header, `${strict.url}/mcp`);
    const whole = { client_id: "c", jti: "1" };
    expect(await at(whole)).toBe(200);
    expect(await at(whole, { typ: "application/at+jwt" })).toBe(200);
    for (const typ of ["JWT", undefined]) expect(await at(whole, { typ })).toBe(401);
    for (const claim of ["client_id", "jti", "iat"]) expect(await at({ ...whole, [claim]: undefined })).toBe(401);
  });

  test("for another server of the same issuer is refused, even in a request with that server's host name", async () => {
    const token = await server.sign(claims({ aud: "https://other.example/mcp" }));
    const headers = { ...bearer(token), host: "other.example" };
    await using published = await serve({ OAUTH_AUDIENCE: "" });
    const at = `${published.url}/mcp`;
    expect(await statusOf({}, {}, at)).toBe(200);
    expect((await send(at, { headers, body: call("probe_status", { job_names: names(1) }) })).status).toBe(401);
    await using named = await serve({ PUBLIC_URL: "", OAUTH_AUDIENCE: "", ALLOWED_HOSTS: "mcp.example,127.0.0.1" });
    const status = async (host: string) =>
      (
        await send(`${named.url}/mcp`, {
          headers: { ...headers, host },
          body: { jsonrpc: "2.0", id: 1, method: "ping" },
        })
      ).status;
    expect(await status("other.example")).toBe(403);
    expect(await status("mcp.example")).toBe(401);
    const right = { ...bearer(await server.sign(claims())), host: "mcp.example:8443" };
    expect(
      (await send(`${named.url}/mcp`, { headers: right, body: { jsonrpc: "2.0", id: 1, method: "ping" } })).status,
    ).toBe(200);
  });

  test("must have the audience that the operator configured; without a configured one nothing is served", async () => {
    await using bare = await serve({ PUBLIC_URL: "", OAUTH_AUDIENCE: "" });
    const answer = await send(`${bare.url}/mcp`, { body: call("probe_status") });
    expect([answer.status, JSON.parse(answer.text).error]).toEqual([500, expect.stringContaining("PUBLIC_URL")]);
    await using explicit = await serve({ PUBLIC_URL: "", OAUTH_AUDIENCE: "urn:durable" });
    expect(await statusOf({ aud: "urn:durable" }, {}, `${explicit.url}/mcp`)).toBe(200);
    expect(await statusOf({ aud: `${explicit.url}/mcp` }, {}, `${explicit.url}/mcp`)).toBe(401);
  });
});

test.each([
  "http://127.0.0.1:1@evil.example",
  "http://localhost:x@evil.example/",
  "http://localhost.evil.example",
  "http://127.0.0.1.evil.example",
  "http://[::1]@evil.example",
  "https://user:secret@login.example",
])("an issuer of %s is not taken for a server on this machine", async (OAUTH_ISSUER) => {
  await using misled = await serve({ OAUTH_ISSUER });
  const { status, text } = await send(`${misled.url}/mcp`, { body: call("probe_status") });
  expect([status, text]).toEqual([500, expect.stringContaining("OAUTH_ISSUER")]);
});

describe("the refusal of a token", () => {
  const refusalOf = async (headers: Record<string, string>) => {
    const response = await listTools(url, headers);
    return [response.status, response.headers.get("www-authenticate") ?? "", await response.text()] as const;
  };
  const METADATA = 'resource_metadata="https://mcp.example/.well-known/oauth-protected-resource/mcp"';

  test.each([[{}], [{ authorization: "Basic YTpi" }], [{ authorization: "" }]])(
    "that is absent (%j) has no error, but says where to get a token and for which scope",
    async (headers: Record<string, string>) => {
      const [status, challenge] = await refusalOf(headers);
      expect([status, challenge]).toEqual([401, `Bearer scope="mcp", ${METADATA}`]);
    },
  );

  test.each(["Bearer", "Bearer ", "Bearer a b", 'Bearer a"b', "Bearer a,b", "Bearer a; Bearer b"])(
    "that is malformed (%s) says invalid_request",
    async (authorization) => {
      const [status, challenge] = await refusalOf({ authorization });
      expect([status, challenge]).toEqual([
        400,
        expect.stringMatching(/^Bearer error="invalid_request", error_description="/),
      ]);
    },
  );

  test("that is expired or meant for another server says invalid_token, in text that a header allows", async () => {
    for (const changes of [{ exp: now() - 60 }, { aud: 'https://x.example/"\\' }, { sub: "" }]) {
      const [status, challenge] = await refusalOf(bearer(await server.sign(claims(changes))));
      expect(status).toBe(401);
      expect(challenge).toMatch(
        /^Bearer error="invalid_token", error_description="[^"\\]+", scope="mcp", resource_metadata="[^"]+"$/,
      );
    }
  });
});

describe("scopes to read and to write", () => {
  const SCOPES = {
    OAUTH_SCOPES: "mcp",
    OAUTH_READ_SCOPE: "jobs:read",
    OAUTH_WRITE_SCOPE: "jobs:write",
    TASK_KEY: "k".repeat(32),
  };
  let scoped: EdgeProcess;
  beforeAll(async () => {
    scoped = await serve(SCOPES);
  });
  afterAll(() => scoped?.[Symbol.asyncDispose]());

  const as = async (scope: string, body: unknown, headers: Record<string, string> = {}, at = scoped) => {
    const token = await server.sign(claims({ scope }));
    return send(`${at.url}/mcp`, { headers: { ...bearer(token), ...headers }, body });
  };
  const read = call("probe_status", { job_names: names(1) });
  const write = call("set_timer", { timer_name: "scoped", seconds: 600 });
  const start = call("weather_data", { latitude: 1, longitude: 1, year: 2013, month: 1 });
  const challenge = ({ headers }: { headers: Record<string, unknown> }) => String(headers["www-authenticate"]);

  test("a token without either can only list the tools", async () => {
    expect((await as("mcp", { jsonrpc: "2.0", id: 1, method: "tools/list" })).status).toBe(200);
    for (const body of [read, write, start]) {
      expect((await as("mcp", body)).status).toBe(403);
    }
  });

  test("a refused call is told the scope that it needs and those that the token has", async () => {
    const refused = await as("mcp", read);
    expect(challenge(refused)).toContain('error="insufficient_scope"');
    expect(challenge(refused)).toContain('scope="mcp jobs:read"');
    const step = await as("mcp jobs:read", write);
    expect([step.status, challenge(step)]).toEqual([403, expect.stringContaining('scope="mcp jobs:read jobs:write"')]);
    expect((await as("mcp jobs:read", read)).status).toBe(200);
    expect((await as("mcp jobs:read jobs:write", write)).status).toBe(200);
  });

  test("a caller with only the read scope can start and stop nothing, in any way", async () => {
    const cancel = call("cancel_job", { job_names: ["timer_scoped"] });
    // An answer to a job's question.
    const answer = { jsonrpc: "2.0", id: "state question", result: { action: "accept", content: {} } };
    for (const body of [write, start, cancel, answer]) expect((await as("mcp jobs:read", body)).status).toBe(403);
    const headers = { "mcp-protocol-version": "2026-07-28" };
    // What a web hook delivers goes on after the token.
    for (const method of ["tasks/cancel", "tasks/update", "events/subscribe", "events/unsubscribe"]) {
      const message = { jsonrpc: "2.0", id: 1, method, params: { taskId: "x" } };
      expect((await as("mcp jobs:read", message, { ...headers, "mcp-method": method })).status).toBe(403);
    }
  });

  test("a subscription to resources of a wrapped server starts jobs, so it needs both scopes and counts as its resources", async () => {
    const snapshot = {
      server: { name: "acme", version: "1" },
      revision: "2025-11-25",
      resources: true,
      tools: [{ name: "pay", inputSchema: { type: "object" } }],
      lists: { prompts: [], resources: [], resourceTemplates: [] },
      offers: ["subscribe"],
    };
    const options = { name: "acme", url: "https://acme.example" };
    const served = { WRAP_OPTIONS: JSON.stringify(options), WRAP_SNAPSHOT: JSON.stringify(snapshot) };
    await using wrapping = await serve({ ...SCOPES, ...served, RATE_LIMIT: "20" }, "test/wrap/wrap-edge.ts");
    const listen = (scope: string, notifications: object) => {
      const method = "subscriptions/listen";
      return as(scope, rpcMessage(method, { notifications }, {}), rpcHeaders(method), wrapping);
    };
    const uris = (count: number) => Array.from({ length: count }, (_, i) => `demo://${i}`);
    const refused = await listen("mcp jobs:read", { resourceSubscriptions: uris(1) });
    expect([refused.status, challenge(refused)]).toEqual([
      403,
      expect.stringContaining('scope="mcp jobs:read jobs:write"'),
    ]);
    const many = await listen("mcp jobs:read jobs:write", { resourceSubscriptions: uris(20) });
    expect([many.status, many.text]).toEqual([429, expect.stringContaining("this request counts as 21")]);
    // Neither starts a job. The empty list of tasks is refused after the scopes have been checked.
    for (const resourceSubscriptions of [[], ["job:timer_a"]]) {
      const { status, text } = await listen("mcp jobs:read", { taskIds: [], resourceSubscriptions });
      expect([status, text]).toEqual([200, expect.stringContaining("taskIds")]);
    }
  });

  test("clients are first told to ask for the scopes to read", async () => {
    const metadata = await fetch(`${scoped.url}/.well-known/oauth-protected-resource/mcp`);
    expect(await metadata.json()).toMatchObject({ resource: AUDIENCE, scopes_supported: ["mcp", "jobs:read"] });
    expect(challenge(await send(`${scoped.url}/mcp`, { body: read }))).toContain('scope="mcp jobs:read"');
  });
});

describe("the authorization server is asked", () => {
  /** An issuer that counts its requests, and answers each with status 503 or never. */
  async function startIssuer(answer: "503" | "never") {
    const state = { asked: 0 };
    const http = await serveHttp((_req, res) => {
      state.asked += 1;
      if (answer === "503") res.writeHead(503).end();
    });
    return { issuer: http.url, state, [Symbol.asyncDispose]: () => http[Symbol.asyncDispose]() };
  }

  const forged = (issuer: string, i: number) => server.sign(claims({ iss: issuer, sub: `${i}` }));

  test("a few times, however many tokens come in while it cannot serve its keys", async () => {
    await using issuer = await startIssuer("503");
    await using edge = await serve({ OAUTH_ISSUER: issuer.issuer });
    const tokens = await Promise.all(Array.from({ length: 300 }, (_, i) => forged(issuer.issuer, i)));
    const statuses = await Promise.all(
      tokens.map(async (token) => (await listTools(`${edge.url}/mcp`, bearer(token))).status),
    );
    expect(new Set(statuses)).toEqual(new Set([503]));
    expect(issuer.state.asked).toBeLessThanOrEqual(4);
  });

  test("not at all about a token that cannot be its own", async () => {
    await using issuer = await startIssuer("503");
    await using edge = await serve({ OAUTH_ISSUER: issuer.issuer });
    const none = Buffer.from(JSON.stringify({ alg: "none" })).toString("base64url");
    const tokens = [
      "letmein",
      "a.b.c",
      await server.sign(claims()),
      await server.sign(claims({ iss: issuer.issuer, exp: now() - 60 })),
      await server.sign(claims({ iss: issuer.issuer }), { typ: "logout+jwt" }),
      `${none}.${Buffer.from(JSON.stringify(claims({ iss: issuer.issuer }))).toString("base64url")}.`,
    ];
    for (const token of tokens) expect((await listTools(`${edge.url}/mcp`, bearer(token))).status).toBe(401);
    expect(issuer.state.asked).toBe(0);
  });

  test("a few times while clients come and leave, and their pending request blocks no other caller", async () => {
    await using issuer = await startIssuer("never");
    await using edge = await serve({ OAUTH_ISSUER: server.issuer, OAUTH_JWKS_URL: `${issuer.issuer}/jwks` });
    const token = await server.sign(claims());
    for (let wave = 0; wave < 10; wave++) {
      const left = new AbortController();
      const sent = Array.from({ length: 100 }, () =>
        fetch(`${edge.url}/mcp`, { method: "POST", headers: bearer(token), body: "{}", signal: left.signal }),
      );
      setTimeout(() => left.abort(), 100);
      await Promise.allSettled(sent);
    }
    // One request to the issuer at a time, each given up after a while.
    expect(issuer.state.asked).toBeLessThanOrEqual(8);
    const health = await fetch(`${edge.url}/health`);
    expect(health.status).toBe(200);
    const response = await listTools(`${edge.url}/mcp`, bearer(token));
    expect([response.status, response.headers.get("retry-after")]).toEqual([503, "5"]);
  });

  test("again soon after a failure, so that callers are let in once it answers", async () => {
    await using fresh = await serve({});
    server.down = true;
    try {
      expect(await statusOf({}, {}, `${fresh.url}/mcp`)).toBe(503);
    } finally {
      server.down = false;
    }
    await until("callers to be let in", async () => (await statusOf({}, {}, `${fresh.url}/mcp`)) === 200);
  });
});

describe("a caller who is blocked", () => {
  test("by subject is refused, and others are let in", async () => {
    await using blocking = await serve({ BLOCKED_CALLERS: "eve, mallory" });
    const at = `${blocking.url}/mcp`;
    const response = await listTools(at, bearer(await server.sign(claims({ sub: "eve" }))));
    expect([response.status, response.headers.get("www-authenticate")]).toEqual([403, null]);
    expect(await response.json()).toMatchObject({ error: "access_denied" });
    expect(await statusOf({ sub: "mallory" }, {}, at)).toBe(403);
    expect(await statusOf({ sub: "ada" }, {}, at)).toBe(200);
  });

  test("by the name of a static token is refused", async () => {
    const bindings = {
      ...bearerBindings({ ada: "static-token-of-ada", eve: "static-token-of-eve" }),
      BLOCKED_CALLERS: "eve",
    };
    await using blocking = await serve(bindings);
    expect((await listTools(`${blocking.url}/mcp`, bearer("static-token-of-eve"))).status).toBe(403);
    expect((await listTools(`${blocking.url}/mcp`, bearer("static-token-of-ada"))).status).toBe(200);
  });
});
