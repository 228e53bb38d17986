import { createServer } from "node:http";
import { afterEach, describe, expect, test } from "vitest";
import { PublishedKeys } from "./keys.ts";
import { KeysUnavailable } from "./refusal.ts";

type Answers = Record<string, (origin: string) => unknown>;

const closing: (() => void)[] = [];
afterEach(() => {
  for (const close of closing.splice(0)) close();
});

/** Starts a server that answers these paths with JSON, or redirects those that have a URL. Returns its origin. */
async function serve(answers: Answers): Promise<string> {
  const server = createServer((req, res) => {
    const answer = answers[req.url ?? ""]?.(origin);
    if (answer instanceof URL) res.writeHead(302, { location: answer.href }).end();
    else if (answer === undefined) res.writeHead(404).end();
    else res.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(answer));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  closing.push(() => server.close().closeAllConnections());
  const address = server.address();
  const origin = `http://127.0.0.1:${typeof address === "object" ? address?.port : 0}`;
  return origin;
}

const OIDC = "/.well-known/openid-configuration";
const OAUTH = "/.well-known/oauth-authorization-server";
const SET = { keys: [{ kty: "OKP", crv: "Ed25519", x: "AA", kid: "one" }] };
const named =
  (path = "") =>
  (origin: string) => ({ issuer: origin + path, jwks_uri: `${origin}/jwks` });
const JWKS = { "/jwks": () => SET };

describe("keys are found", () => {
  test.each<[string, string, Answers]>([
    ["by OpenID Connect's metadata", "", { [OIDC]: named(), ...JWKS }],
    ["by RFC 8414's metadata", "", { [OAUTH]: named(), ...JWKS }],
    ["by RFC 8414's, where OpenID's names another issuer", "", { [OIDC]: named("/else"), [OAUTH]: named(), ...JWKS }],
    ["of an issuer with a path, whose metadata lies below it", "/t", { [`/t${OIDC}`]: named("/t"), ...JWKS }],
    ["of an issuer with a path, whose metadata lies at the top", "/t", { [`${OAUTH}/t`]: named("/t"), ...JWKS }],
    ["of such an issuer that has OpenID Connect's alone", "/t", { [`${OIDC}/t`]: named("/t"), ...JWKS }],
    ["of an issuer whose metadata ends its name with a slash", "/t", { [`/t${OIDC}`]: named("/t/"), ...JWKS }],
  ])("%s", async (_how, path, answers) => {
    const { set } = await new PublishedKeys((await serve(answers)) + path, undefined).get();
    expect(set).toEqual(SET);
  });

  test("at the configured address, without metadata", async () => {
    const origin = await serve(JWKS);
    expect((await new PublishedKeys("https://issuer.example", `${origin}/jwks`).get()).set).toEqual(SET);
  });
});

describe("keys are not found through metadata", () => {
  test.each<[string, Answers]>([
    ["if there is no metadata", JWKS],
    ["if it names another issuer", { [OIDC]: named("/else"), [OAUTH]: named("/else"), ...JWKS }],
    ["if it redirects", { [OIDC]: (origin) => new URL(`${origin}/moved`), "/moved": named(), ...JWKS }],
    ["if it names no keys", { [OIDC]: (origin) => ({ issuer: origin }), ...JWKS }],
    ["if it names a URL that is not trusted", { [OIDC]: (issuer) => ({ issuer, jwks_uri: "http://a.example/jwks" }) }],
    ["if nothing is at their URL", { [OIDC]: named() }],
    ["if their URL redirects", { [OIDC]: named(), "/jwks": (o) => new URL(`${o}/moved`), "/moved": () => SET }],
    ["if they are not a set", { [OIDC]: named(), "/jwks": () => ({ keys: "none" }) }],
    ["if one of them is not a key", { [OIDC]: named(), "/jwks": () => ({ keys: ["none"] }) }],
    ["if they are a list of sets", { [OIDC]: named(), "/jwks": () => [SET] }],
  ])("%s", async (_where, answers) => {
    const keys = new PublishedKeys(await serve(answers), undefined);
    await expect(keys.get()).rejects.toThrow(KeysUnavailable);
  });
});
