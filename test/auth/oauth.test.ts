/** Access tokens of an authorization server: which are accepted, and how others are refused. */
import { createHmac } from "node:crypto";
import { exportSPKI, importJWK, type JWTPayload, UnsecuredJWT } from "jose";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type EdgeProcess, startEdge } from "../../cli/launcher/local-edge.ts";
import { until } from "../../testing/stack/program.ts";
import { type AuthorizationServer, claimsOf, now, startAuthorizationServer } from "./authorization-server.ts";
import { bearer, listTools } from "./support.ts";

let server: AuthorizationServer;
let edge: EdgeProcess;
let url: string;
beforeAll(async () => {
  server = await startAuthorizationServer(["ada"]);
  edge = await serve({});
  url = `${edge.url}/mcp`;
});
afterAll(async () => {
  await edge?.[Symbol.asyncDispose]();
  await server?.[Symbol.asyncDispose]();
});

/** An edge without a Resonate server: no request of these tests reaches one. */
function serve(bindings: Record<string, string>): Promise<EdgeProcess> {
  const base = {
    AUTH_MODE: "oauth",
    OAUTH_ISSUER: server.issuer,
    ALLOWED_HOSTS: "127.0.0.1",
    RESONATE_URL: "http://127.0.0.1:9",
  };
  return startEdge({ port: 0, bindings: { ...base, ...bindings } });
}

const claims = (changes?: object) => claimsOf(server.issuer, url, changes);

const base64url = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");

test("a token that the authorization server issued for this resource is accepted", async () => {
  const response = await listTools(url, bearer(await server.issue("ada", url)));
  expect(response.status).toBe(200);
  expect(await response.json()).toMatchObject({ result: { tools: expect.any(Array) } });
});

describe("without a token", () => {
  test("a request is refused with the address of the metadata that says how to get a token", async () => {
    const response = await listTools(url);
    expect(response.status).toBe(401);
    const metadataUrl = `${edge.url}/.well-known/oauth-protected-resource/mcp`;
    expect(response.headers.get("www-authenticate")).toContain(`resource_metadata="${metadataUrl}"`);
    const metadata = await fetch(metadataUrl, { headers: { origin: "https://a.example" } });
    expect(metadata.headers.get("access-control-allow-origin")).toBe("*");
    expect(await metadata.json()).toMatchObject({
      resource: url,
      authorization_servers: [server.issuer],
      scopes_supported: ["mcp"],
    });
    expect((await fetch(`${edge.url}/.well-known/oauth-protected-resource`)).status).toBe(200);
  });

  test.each(["GET", "DELETE", "PUT"])("%s is refused as well", async (method) => {
    expect((await fetch(url, { method })).status).toBe(401);
  });

  test("the edge's health and front page are served, but no job", async () => {
    expect((await fetch(`${edge.url}/health`)).status).toBe(200);
    expect((await fetch(`${edge.url}/ready`)).status).toBe(503);
    expect((await fetch(`${edge.url}/`)).status).toBe(200);
    expect((await fetch(`${edge.url}/pages/job?name=x`)).status).toBe(401);
    expect((await fetch(`${edge.url}/elsewhere`)).status).toBe(404);
  });
});

describe("a token is refused", () => {
  const tokens: Record<string, () => Promise<string> | string> = {
    "that has expired": () => server.sign(claims({ exp: now() - 60 })),
    "that never expires": () => server.sign(claims({ exp: undefined })),
    "that is not valid yet": () => server.sign(claims({ nbf: now() + 60 })),
    "for another audience": () => server.sign(claims({ aud: "https://other.example/mcp" })),
    "for no audience": () => server.sign(claims({ aud: undefined })),
    "of another issuer": () => server.sign(claims({ iss: "https://other.example" })),
    "without a subject": () => server.sign(claims({ sub: undefined })),
    "that is not signed (alg: none)": () => new UnsecuredJWT(claims()).encode(),
    "signed with the public key as a shared secret (HS256)": () => signWithPublicKey(claims()),
    "with an unknown key id": () => server.sign(claims(), { kid: "unknown" }),
    "with other claims than were signed": async () => {
      const [header, , signature] = (await server.sign(claims({ sub: "eve" }))).split(".");
      return [header, base64url(claims()), signature].join(".");
    },
    "with another signature": async () => {
      const [head = "", payload = ""] = (await server.sign(claims())).split(".");
      const [, , signature] = (await server.sign(claims({ sub: "eve" }))).split(".");
      return [head, payload, signature].join(".");
    },
    "that is no JWT": () => "letmein",
  };

  test.each(Object.keys(tokens))("%s", async (which) => {
    const token = (await tokens[which]?.()) ?? "";
    const response = await listTools(url, bearer(token));
    expect(response.status).toBe(401);
    expect(response.headers.get("www-authenticate")).toMatch(
      /^Bearer error="invalid_token".*resource_metadata="http:.*"$/,
    );
    const body = await response.text();
    expect(body).toContain("invalid_token");
    expect(body).not.toContain(token);
  });

  test("that is sent in another way than as a Bearer token", async () => {
    const token = await server.issue("ada", url);
    expect((await listTools(url, { authorization: `Basic ${token}` })).status).toBe(401);
    expect((await listTools(url, { "x-token": token })).status).toBe(401);
    expect((await listTools(`${url}?access_token=${token}`)).status).toBe(401);
  });

  test.each([[{ scope: "openid" }], [{ scope: undefined }], [{ scope: "mcp2 xmcp" }]])(
    "that lacks the scope, and the refusal names the scope: %j",
    async (changes) => {
      const response = await listTools(url, bearer(await server.sign(claims(changes))));
      expect(response.status).toBe(403);
      expect(response.headers.get("www-authenticate")).toMatch(/error="insufficient_scope".*scope="mcp"/);
    },
  );
});

/** An attacker's token, signed with the public key for a verifier that would take the key for a shared secret. */
async function signWithPublicKey(payload: JWTPayload): Promise<string> {
  const { kid, n = "", e = "" } = server.key;
  const key = await importJWK({ kty: "RSA", n, e }, "RS256", { extractable: true });
  const publicKey = await exportSPKI(key as CryptoKey);
  const signed = `${base64url({ alg: "HS256", kid })}.${base64url(payload)}`;
  return `${signed}.${createHmac("sha256", publicKey).update(signed).digest("base64url")}`;
}

test("a token may have several audiences and scopes, and name its scopes in `scp`", async () => {
  for (const changes of [
    { aud: ["https://other.example/mcp", url] },
    { scope: "openid mcp" },
    { scope: undefined, scp: ["openid", "mcp"] },
    { scope: undefined, scp: "openid mcp" },
  ]) {
    expect((await listTools(url, bearer(await server.sign(claims(changes))))).status).toBe(200);
  }
});

test("the audience, the scopes and the address of the keys can be configured", async () => {
  await using other = await serve({
    OAUTH_AUDIENCE: "urn:durable-mcp",
    OAUTH_SCOPES: "read write",
    OAUTH_JWKS_URL: `${server.issuer}/jwks`,
  });
  const at = async (changes: object) =>
    (await listTools(`${other.url}/mcp`, bearer(await server.sign(claims(changes))))).status;
  expect(await at({ aud: "urn:durable-mcp", scope: "write read" })).toBe(200);
  expect(await at({ aud: "urn:durable-mcp", scope: "read" })).toBe(403);
  expect(await at({ aud: `${other.url}/mcp`, scope: "write read" })).toBe(401);
});

test("a new signing key is accepted soon after it replaced the old one, which is then refused", async () => {
  const old = await server.sign(claims());
  expect((await listTools(url, bearer(old))).status).toBe(200);
  await server.rotate();
  const fresh = await server.issue("ada", url);
  await until("the new key to be known", async () => (await listTools(url, bearer(fresh))).status === 200);
  expect((await listTools(url, bearer(old))).status).toBe(401);
});

test("tokens with unknown keys do not make the edge fetch the keys each time", async () => {
  const before = server.keyFetches;
  const tokens = await Promise.all(
    Array.from({ length: 20 }, (_, i) => server.sign(claims(), { kid: `unknown ${i}` })),
  );
  for (const token of tokens) expect((await listTools(url, bearer(token))).status).toBe(401);
  expect(server.keyFetches - before).toBeLessThanOrEqual(2);
});

test("without the authorization server's keys, callers are refused and told to try again", async () => {
  const token = await server.issue("ada", url);
  await using fresh = await serve({ OAUTH_AUDIENCE: url });
  server.down = true;
  try {
    const response = await listTools(`${fresh.url}/mcp`, bearer(token));
    expect([response.status, response.headers.get("retry-after")]).toEqual([503, "5"]);
    expect(await response.json()).toMatchObject({ error: "temporarily_unavailable" });
    expect((await listTools(`${fresh.url}/mcp`)).status).toBe(401);
  } finally {
    server.down = false;
  }
  await until("the keys to be asked for again", async () => {
    return (await listTools(`${fresh.url}/mcp`, bearer(token))).status === 200;
  });
});
