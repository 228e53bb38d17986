/** Authentication and authorization of callers. */
import { callerOf } from "../../core/author/index.ts";
import type { Access, OAuthProtectedResourceMetadata } from "../../core/tools/index.ts";
import { describeError, type EdgeLog } from "../http/log.ts";
import { type AuthConfig, isLoopback, type OAuthConfig, type Token } from "./auth-config.ts";
import type { OAuthVerifier } from "./oauth.ts";
import {
  type Demands,
  KeysUnavailable,
  metadataOf,
  refuse,
  TokenRefused,
  unavailable,
  type Verified,
} from "./refusal.ts";
import { holderOfToken } from "./secret.ts";

export interface Auth {
  /** The caller of a request and the content of its token; or the response that refuses it. */
  authenticate(request: Request): Promise<Verified | Response>;
  /** The response that refuses a request whose token lacks scopes; undefined if it has them. Absent without OAuth. */
  authorize?(request: Request, scopes: readonly string[], access: readonly Access[]): Promise<Response | undefined>;
  /** Where clients get tokens (RFC 9728) for the server that `request` reached. Absent without OAuth. */
  metadata?(request: Request): Promise<OAuthProtectedResourceMetadata>;
}

/** The address of the deployment as its operator configured it. */
interface PublicAddress {
  PUBLIC_URL?: string | undefined;
  ALLOWED_HOSTS?: readonly string[] | undefined;
}

/**
 * Undefined if the deployment authenticates nobody.
 *
 * @param title the name of the server, for people
 */
export function createAuth(config: AuthConfig, address: PublicAddress, log: EdgeLog, title: string): Auth | undefined {
  switch (config.AUTH_MODE) {
    case "none":
      return undefined;
    case "bearer": {
      const verify = bearerVerifier(config.BEARER_TOKENS);
      return { authenticate: (request) => authenticate(request, verify, {}, log) };
    }
    case "oauth":
      return createResourceServer(config, address, log, title);
  }
}

/** Verifies tokens that the operator hands out, by their hashes. @throws {TokenRefused} for an unknown token */
function bearerVerifier(tokens: readonly Token[]): (token: string) => Promise<Verified> {
  return async (token) => {
    const name = await holderOfToken(token, tokens);
    if (name === undefined) throw new TokenRefused("The token is not known");
    return { caller: await callerOf(name, name), scopes: [] };
  };
}

/** A resource server by the MCP authorization specification. */
function createResourceServer(config: OAuthConfig, address: PublicAddress, log: EdgeLog, title: string): Auth {
  let verifier: OAuthVerifier | undefined;
  const { OAUTH_ISSUER: issuer, OAUTH_AUDIENCE, OAUTH_SCOPES: required } = config;
  const scopeFor: Record<Access, string | undefined> = {
    read: config.OAUTH_READ_SCOPE,
    write: config.OAUTH_WRITE_SCOPE,
  };
  // A client first asks for the scopes that let it look around. The refusal of a start names further ones.
  const firstScopes = [...new Set([...required, ...(scopeFor.read === undefined ? [] : [scopeFor.read])])];
  return {
    authenticate(request) {
      const resource = resourceOf(request, address);
      const verify = async (token: string) => {
        const { OAuthVerifier } = await import("./oauth.ts");
        verifier ??= new OAuthVerifier(config);
        const verified = await verifier.verify(token, OAUTH_AUDIENCE ?? resource.href);
        if (required.every((scope) => verified.scopes.includes(scope))) return verified;
        throw new TokenRefused("A scope is missing", "insufficient_scope");
      };
      return authenticate(request, verify, { scopes: firstScopes, resource }, log);
    },
    async authorize(request, scopes, access) {
      const requiredScopes = access.flatMap((kind) => scopeFor[kind] ?? []);
      const missing = requiredScopes.filter((scope) => !scopes.includes(scope));
      if (missing.length === 0) return undefined;
      // The next token must allow what this one allows, too.
      const scopesToRequest = [
        ...firstScopes,
        ...Object.values(scopeFor).filter((scope) => scope !== undefined && scopes.includes(scope)),
      ];
      const demands = {
        scopes: [...new Set([...scopesToRequest, ...missing])] as string[],
        resource: resourceOf(request, address),
      };
      return refuse(new TokenRefused(`This takes the scope ${missing.join(" and ")}`, "insufficient_scope"), demands);
    },
    async metadata(request) {
      return metadataOf(title, resourceOf(request, address), issuer, firstScopes);
    },
  };
}

/** Does what the SDK's `verifyBearerToken` does, without loading the SDK for a good token. */
async function authenticate(
  request: Request,
  verify: (token: string) => Promise<Verified>,
  demands: Demands,
  log: EdgeLog,
): Promise<Verified | Response> {
  try {
    return await verify(tokenIn(request));
  } catch (error) {
    if (error instanceof TokenRefused) return refuse(error, demands);
    if (!(error instanceof KeysUnavailable)) throw error;
    log.error("tokens cannot be verified", { reason: error.message, error: describeError(error.cause) });
    return unavailable(error.message);
  }
}

/** By RFC 6750. */
const TOKEN_PATTERN = /^Bearer +([\w\-.~+/]+=*) *$/i;

/** @throws {TokenRefused} when there is none */
function tokenIn({ headers }: Request): string {
  const header = headers.get("authorization");
  if (header === null || !/^Bearer( |$)/i.test(header)) {
    throw new TokenRefused("A token is needed: Authorization: Bearer TOKEN", "missing");
  }
  const token = TOKEN_PATTERN.exec(header)?.[1];
  if (token === undefined) throw new TokenRefused("Authorization must be 'Bearer TOKEN'", "invalid_request");
  return token;
}

/**
 * The URL of `/mcp`, for which tokens are issued. It comes from the configuration, never from a request alone: otherwise a
 * token for another server of the same issuer would be accepted in a request with that server's name. Where neither a name nor
 * a URL is configured, the audience is, and this URL only informs the client that asks.
 */
export function resourceOf(request: Request, { PUBLIC_URL, ALLOWED_HOSTS }: PublicAddress): URL {
  if (PUBLIC_URL !== undefined) return new URL("/mcp", PUBLIC_URL);
  const resourceUrl = new URL("/mcp", request.url);
  if (ALLOWED_HOSTS === undefined || isLoopback(resourceUrl)) return resourceUrl;
  // Requests to other names have been refused.
  return new URL("/mcp", `https://${resourceUrl.hostname}`);
}
