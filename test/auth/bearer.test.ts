/** Static tokens, and configurations with which the edge serves nothing. */
import { createHash } from "node:crypto";
import { execa } from "execa";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type EdgeProcess, startEdge } from "../../cli/launcher/local-edge.ts";
import { bearer, listTools } from "./support.ts";

/** An unused address: no request of these tests reaches a Resonate server. */
const RESONATE_URL = "http://127.0.0.1:9";

test("only the configured tokens are accepted, among them one that the script made", async () => {
  const { stdout } = await execa(process.execPath, ["cli/main.ts", "token", "ada"]);
  const token = /^ {2}(dme_\S+)$/m.exec(stdout)?.[1] ?? expect.fail(stdout);
  const entry = /^ {2}(\{.*\})$/m.exec(stdout)?.[1] ?? expect.fail(stdout);
  const { sha256 } = JSON.parse(entry);
  const hash = (text: string) => createHash("sha256").update(text).digest("hex");
  const other = { name: "bob", sha256: hash("static-token-other").toUpperCase() };
  const second = { name: "ada", sha256: hash("static-token-second") };
  const short = { name: "eve", sha256: hash("fifteen-letters") };
  const BEARER_TOKENS = JSON.stringify([JSON.parse(entry), other, second, short]);
  await using edge = await startEdge({ port: 0, bindings: { RESONATE_URL, AUTH_MODE: "bearer", BEARER_TOKENS } });
  const status = async (headers?: Record<string, string>) => (await listTools(`${edge.url}/mcp`, headers)).status;

  expect(await status(bearer(token))).toBe(200);
  expect(await status(bearer("static-token-other"))).toBe(200);
  expect(await status(bearer("static-token-second"))).toBe(200);
  for (const wrong of [
    token.slice(0, -1),
    `${token}x`,
    token.toUpperCase(),
    sha256,
    other.sha256,
    "ada",
    "fifteen-letters",
    "x".repeat(8_000),
  ]) {
    expect(await status(bearer(wrong))).toBe(401);
  }
  expect(await status()).toBe(401);
  const refused = await listTools(`${edge.url}/mcp`, bearer(sha256));
  expect(refused.headers.get("www-authenticate")).toMatch(/^Bearer error="invalid_token"/);
  expect(await refused.text()).not.toContain(sha256);
  expect((await fetch(`${edge.url}/.well-known/oauth-protected-resource`)).status).toBe(404);
});

test("the script requires one name that is valid in the configuration", async () => {
  for (const args of [[], ["a b"], ["ada", "bob"], ["x".repeat(65)]]) {
    const { exitCode, stderr } = await execa(process.execPath, ["cli/main.ts", "token", ...args], {
      reject: false,
    });
    expect([exitCode, stderr]).toEqual([2, expect.stringContaining("npm run token -- NAME")]);
  }
});

const HASH = "0".repeat(64);
const EMPTY = JSON.stringify([{ name: "ada", sha256: createHash("sha256").digest("hex") }]);

const WRONG: [bindings: Record<string, string>, reason: RegExp][] = [
  [{}, /AUTH_MODE: set it to oauth .*, bearer .* or none/],
  [{ AUTH_MODE: "" }, /AUTH_MODE/],
  [{ AUTH_MODE: "None" }, /AUTH_MODE/],
  [{ AUTH_MODE: "oauth" }, /OAUTH_ISSUER: set it to a URL/],
  [{ AUTH_MODE: "oauth", OAUTH_ISSUER: "login.example" }, /OAUTH_ISSUER/],
  [{ AUTH_MODE: "oauth", OAUTH_ISSUER: "http://login.example" }, /OAUTH_ISSUER: it must begin with https:/],
  [{ AUTH_MODE: "oauth", OAUTH_ISSUER: "https://login.example", OAUTH_JWKS_URL: "http://a.example" }, /OAUTH_JWKS_URL/],
  [{ AUTH_MODE: "bearer" }, /BEARER_TOKENS: set it to a JSON list/],
  [{ AUTH_MODE: "bearer", BEARER_TOKENS: "hunter2" }, /BEARER_TOKENS: set it to a JSON list/],
  [{ AUTH_MODE: "bearer", BEARER_TOKENS: "[]" }, /BEARER_TOKENS/],
  [{ AUTH_MODE: "bearer", BEARER_TOKENS: EMPTY }, /BEARER_TOKENS.*the hash of the empty text/],
  [{ AUTH_MODE: "none", OPERATOR_TOKENS: EMPTY }, /OPERATOR_TOKENS.*the hash of the empty text/],
  [
    { AUTH_MODE: "none", RESONATE_TOKENS: EMPTY.replace(/"[0-9a-f]{64}"/, (hash) => hash.toUpperCase()) },
    /RESONATE_TOKENS.*the hash of the empty text/,
  ],
  [{ AUTH_MODE: "none", OPERATOR_TOKENS: "hunter2" }, /OPERATOR_TOKENS: set it to a JSON list/],
  [{ AUTH_MODE: "bearer", BEARER_TOKENS: JSON.stringify([{ name: "ada", sha256: "hunter2" }]) }, /BEARER_TOKENS/],
  [{ AUTH_MODE: "bearer", BEARER_TOKENS: JSON.stringify([{ name: "a b", sha256: HASH }]) }, /BEARER_TOKENS/],
];

describe("an edge with a wrong configuration", () => {
  let edge: EdgeProcess;
  beforeAll(async () => {
    // One process, with an isolate for each configuration.
    const [bindings = {}, ...otherIsolates] = WRONG.map(([wrong]) => ({ RESONATE_URL, ...wrong }));
    edge = await startEdge({ port: 0, bindings, otherIsolates });
  });
  afterAll(() => edge?.[Symbol.asyncDispose]());

  test.each(WRONG.map(([bindings, reason], i) => [bindings, reason, i] as const))(
    "answers every request with the error in it: %j",
    async (_bindings, reason, i) => {
      const origin = [edge.url, ...edge.otherUrls][i];
      for (const path of ["/mcp", "/ready", "/health", "/", "/.well-known/oauth-protected-resource"]) {
        const response = await fetch(`${origin}${path}`, { headers: bearer("hunter2") });
        const body = await response.text();
        expect([response.status, JSON.parse(body).error]).toEqual([500, expect.stringMatching(reason)]);
        expect(body).not.toContain("hunter2");
      }
    },
  );
});
