import { createServer } from "node:http";
import { exportJWK, generateKeyPair, type JWK, SignJWT } from "jose";
import { afterEach, expect, test, vi } from "vitest";
import { AuthConfig, type OAuthConfig } from "./auth-config.ts";
import { OAuthVerifier } from "./oauth.ts";
import { isSameUrl } from "./same-url.ts";

const RESOURCE = "https://edge.example/mcp";

const closing: (() => void)[] = [];
afterEach(() => {
  for (const close of closing.splice(0)) close();
  vi.useRealTimers();
});

/** An authorization server that publishes `keys`. Returns the configuration of an edge that trusts it. */
async function publish(keys: { current: JWK[] }, path = ""): Promise<OAuthConfig> {
  const server = createServer((_req, res) => res.end(JSON.stringify({ keys: keys.current })));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  closing.push(() => server.close().closeAllConnections());
  const address = server.address();
  const origin = `http://127.0.0.1:${typeof address === "object" ? address?.port : 0}`;
  const set = { AUTH_MODE: "oauth", OAUTH_ISSUER: origin + path, OAUTH_JWKS_URL: `${origin}/jwks` };
  return AuthConfig.parse(set) as OAuthConfig;
}

/** A key pair whose public key has this id, if any, and a function that signs claims with it. */
async function keyPair(kid?: string) {
  const { publicKey, privateKey } = await generateKeyPair("ES256");
  const sign = (iss: string, aud: string | string[] = RESOURCE) =>
    new SignJWT({ iss, aud, sub: "ada" })
      .setProtectedHeader({ alg: "ES256", ...(kid !== undefined && { kid }) })
      .setExpirationTime("1m")
      .sign(privateKey);
  return { jwk: { ...(await exportJWK(publicKey)), ...(kid !== undefined && { kid }) }, sign };
}

test.each([undefined, "one"])(
  "each of several keys of one id (%s) is tried, and their successors are fetched",
  async (id) => {
    const [first, second, next] = [await keyPair(id), await keyPair(id), await keyPair(id)];
    const keys = { current: [first.jwk, second.jwk] };
    const config = await publish(keys);
    const verifier = new OAuthVerifier(config);
    const verify = async ({ sign }: typeof first) => verifier.verify(await sign(config.OAUTH_ISSUER), RESOURCE);
    const callers = [await verify(first), await verify(second)].map(({ caller }) => caller);
    expect(callers[0]).toEqual(callers[1]);
    await expect(verify(next)).rejects.toThrow("signature verification failed");
    keys.current = [next.jwk];
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 10_000 });
    await verify(next);
    await expect(verify(first)).rejects.toThrow("signature verification failed");
  },
);

test.each([
  ["https://edge.example/mcp/", true],
  ["https://edge.example:443/mcp", true],
  ["HTTPS://EDGE.example/mcp", true],
  ["https://edge.example/", false],
  ["https://edge.example/MCP", false],
  ["https://edge.example/x/../mcp", false],
  ["https://edge.example/mcp//", false],
  ["https://edge.example/mcp?x", false],
  ["https://edge.example:8443/mcp", false],
  ["https://other.example\\@edge.example/mcp", false],
  ["http://edge.example/mcp", false],
  ["edge.example/mcp", false],
])("a token for %s is one for the server: %s", async (aud, isAccepted) => {
  const pair = await keyPair("one");
  const config = await publish({ current: [pair.jwk] });
  for (const audience of [aud, ["https://other.example", aud]]) {
    const verified = new OAuthVerifier(config).verify(await pair.sign(config.OAUTH_ISSUER, audience), RESOURCE);
    if (isAccepted) await verified;
    else await expect(verified).rejects.toThrow('"aud"');
  }
});

test("an issuer is the same with a final slash, and its callers too", async () => {
  const pair = await keyPair("one");
  const config = await publish({ current: [pair.jwk] }, "/tenant/");
  const verifier = new OAuthVerifier(config);
  const issuer = config.OAUTH_ISSUER;
  const callers = [];
  for (const iss of [issuer, issuer.slice(0, -1)])
    callers.push((await verifier.verify(await pair.sign(iss), RESOURCE)).caller);
  expect(callers[0]).toEqual(callers[1]);
  await expect(verifier.verify(await pair.sign(`${issuer}x`), RESOURCE)).rejects.toThrow('"iss"');
});

test("texts that are no URLs are compared as they are", () => {
  expect([isSameUrl("mcp", "mcp"), isSameUrl("mcp", "MCP"), isSameUrl("mcp/", "mcp")]).toEqual([true, false, false]);
});
