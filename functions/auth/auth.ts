/** Who may use the server, and as whom. */
import { ANYONE, type Caller } from "../caller.ts";
import { describeError, type Log } from "../log.ts";
import type { OAuthProtectedResourceMetadata } from "../protocol.ts";
import { BearerVerifier } from "./bearer.ts";
import type { AuthConfig, OAuthConfig } from "./config.ts";
import { KeysUnavailable, OAuthVerifier } from "./oauth.ts";
import type { Demands } from "./refusal.ts";
import { TokenRefused, type Verified } from "./token.ts";

export interface Auth {
  /** The caller who made a request, or the answer that refuses it. */
  authenticate(request: Request): Promise<Caller | Response>;
  /** Where clients get tokens (RFC 9728), for the server that `request` reached; undefined where there is nothing to say. */
  metadata(request: Request): Promise<OAuthProtectedResourceMetadata | undefined>;
}

export function createAuth(config: AuthConfig, log: Log): Auth {
  switch (config.AUTH_MODE) {
    case "none":
      return { authenticate: async () => ANYONE, metadata: async () => undefined };
    case "bearer": {
      const verifier = new BearerVerifier(config.BEARER_TOKENS);
      return {
        authenticate: (request) => authenticate(request, (token) => verifier.verify(token), {}, log),
        metadata: async () => undefined,
      };
    }
    case "oauth":
      return createResourceServer(config, log);
  }
}

/** A resource server as the MCP authorization specification has it. */
function createResourceServer(config: OAuthConfig, log: Log): Auth {
  const verifier = new OAuthVerifier(config);
  const { OAUTH_ISSUER: issuer, OAUTH_AUDIENCE, OAUTH_SCOPES: requiredScopes } = config;
  return {
    authenticate(request) {
      const resource = resourceOf(request);
      const verify = (token: string) => verifier.verify(token, OAUTH_AUDIENCE ?? resource.href);
      return authenticate(request, verify, { requiredScopes, resource }, log);
    },
    async metadata(request) {
      const { metadataOf } = await import("./refusal.ts");
      return metadataOf(resourceOf(request), issuer, requiredScopes);
    },
  };
}

/** What the SDK's `verifyBearerToken` does, without loading the SDK for a token that is good. */
async function authenticate(
  request: Request,
  verify: (token: string) => Promise<Verified>,
  demands: Demands,
  log: Log,
): Promise<Caller | Response> {
  const { requiredScopes = [] } = demands;
  try {
    const { caller, scopes } = await verify(tokenIn(request));
    if (requiredScopes.every((scope) => scopes.includes(scope))) return caller;
    throw new TokenRefused("Insufficient scope", "insufficient_scope");
  } catch (error) {
    const { refuse, unavailable } = await import("./refusal.ts");
    if (error instanceof TokenRefused) return refuse(error, demands);
    if (!(error instanceof KeysUnavailable)) throw error;
    log.error("tokens cannot be verified", { reason: error.message, error: describeError(error.cause) });
    return unavailable(error.message);
  }
}

/** @throws {TokenRefused} when there is none */
function tokenIn({ headers }: Request): string {
  const header = headers.get("authorization");
  if (!header) throw new TokenRefused("Missing Authorization header");
  const token = /^Bearer +(\S+)$/i.exec(header)?.[1];
  if (token === undefined) throw new TokenRefused("Invalid Authorization header format, expected 'Bearer TOKEN'");
  return token;
}

const resourceOf = (request: Request): URL => new URL("/mcp", request.url);
