import type { RequestListener } from "node:http";
import { exportJWK, generateKeyPair, type JWK, type JWTPayload, SignJWT } from "jose";
import { type Configuration, type JWKS, Provider } from "oidc-provider";
import { serveHttp } from "../../testing/stack/http-server.ts";

/** An OAuth 2.1 authorization server on loopback that issues JWTs for any resource. */
export interface AuthorizationServer extends AsyncDisposable {
  readonly issuer: string;
  /** The current signing key: the private key as JWK. */
  readonly key: JWK & { kid: string };
  /** Requests a token at the token endpoint, as one of `clients`. The client's name becomes the subject. */
  issue(client: string, resource: string, scope?: string): Promise<string>;
  /** Signs any claims with the current key, including claims that the server itself would never sign. */
  sign(claims: JWTPayload, header?: { alg?: string; kid?: string; typ?: unknown }): Promise<string>;
  /** Replaces the signing key. The key set then has only the new key. */
  rotate(): Promise<void>;
  /** How often the key set was fetched. */
  readonly keyFetches: number;
  /** Whether the server answers with 503 instead. */
  down: boolean;
}

/** The time in seconds, as in claims. */
export const now = () => Math.floor(Date.now() / 1_000);

/** Ada's valid claims for a resource, with `changes` applied; an undefined value removes its claim. */
export function claimsOf(issuer: string, aud: string, changes: object = {}): JWTPayload {
  const all = { iss: issuer, aud, sub: "ada", iat: now(), exp: now() + 60, scope: "mcp", ...changes };
  return JSON.parse(JSON.stringify(all));
}

const ALGORITHM = "RS256";

/** The redirect URI for tests that log a user in. Nothing listens there. */
export const REDIRECT_URI = "http://127.0.0.1:9/callback";

/** `clients` may request tokens in their own name. `more` is additional configuration of the server. */
export async function startAuthorizationServer(
  clients: string[],
  more: Configuration = {},
): Promise<AuthorizationServer> {
  let handle: RequestListener = (_req, res) => void res.writeHead(503).end();
  let keyFetches = 0;
  const server = await serveHttp((req, res) => {
    if (req.url === "/jwks") keyFetches += 1;
    if (state.down) res.writeHead(503).end();
    else handle(req, res);
  });
  const state = { down: false };
  const issuer = server.url;

  let key: AuthorizationServer["key"];
  const rotate = async () => {
    const { privateKey } = await generateKeyPair(ALGORITHM, { extractable: true });
    key = { ...(await exportJWK(privateKey)), kid: crypto.randomUUID(), alg: ALGORITHM, use: "sig" };
    handle = new Provider(issuer, {
      ...configuration(clients, { keys: [key] } as JWKS),
      ...more,
    }).callback();
  };
  await rotate();

  return {
    issuer,
    get key() {
      return key;
    },
    async issue(client, resource, scope = "mcp") {
      const response = await fetch(`${issuer}/token`, {
        method: "POST",
        headers: { authorization: `Basic ${btoa(`${client}:${SECRET}`)}` },
        body: new URLSearchParams({ grant_type: "client_credentials", resource, scope }),
      });
      const answer = (await response.json()) as { access_token?: string };
      if (answer.access_token === undefined) throw new Error(`no token was issued: ${JSON.stringify(answer)}`);
      return answer.access_token;
    },
    sign: (claims, header = {}) =>
      new SignJWT(claims)
        .setProtectedHeader({ alg: ALGORITHM, kid: key.kid, typ: "at+jwt", ...(header as { typ?: string }) })
        .sign(key),
    rotate,
    get keyFetches() {
      return keyFetches;
    },
    get down() {
      return state.down;
    },
    set down(down) {
      state.down = down;
    },
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  };
}

const SECRET = "for loopback only";

function configuration(clients: string[], jwks: JWKS): Configuration {
  return {
    jwks,
    clients: clients.map((client_id) => ({
      client_id,
      client_secret: SECRET,
      grant_types: ["client_credentials"],
      redirect_uris: [],
      response_types: [],
    })),
    scopes: ["mcp", "offline_access"],
    // Pages of any origin may ask for tokens.
    clientBasedCORS: () => true,
    cookies: { keys: ["for loopback only"] },
    findAccount: (_context, accountId) => ({ accountId, claims: () => ({ sub: accountId }) }),
    ttl: { AccessToken: 600, ClientCredentials: 600, Interaction: 600, Session: 600, Grant: 600, RefreshToken: 600 },
    features: {
      devInteractions: { enabled: true },
      registration: { enabled: true },
      clientCredentials: { enabled: true },
      resourceIndicators: {
        enabled: true,
        useGrantedResource: () => true,
        getResourceServerInfo: (_context, resource) => ({
          scope: "mcp",
          audience: resource,
          accessTokenFormat: "jwt",
          jwt: { sign: { alg: ALGORITHM } },
        }),
      },
    },
  };
}
