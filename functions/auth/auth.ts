/** Who may use the server, and as whom. */
import {
  type AuthInfo,
  bearerAuthChallengeResponse,
  buildOAuthProtectedResourceMetadata,
  getOAuthProtectedResourceMetadataUrl,
  OAuthError,
  OAuthErrorCode,
  type OAuthProtectedResourceMetadata,
  verifyBearerToken,
} from "@modelcontextprotocol/server";
import { ANYONE, type Caller } from "../caller.ts";
import { describeError, type Log } from "../log.ts";
import { BearerVerifier } from "./bearer.ts";
import type { AuthConfig, OAuthConfig } from "./config.ts";
import { KeysUnavailable, OAuthVerifier } from "./oauth.ts";

/** In seconds. */
const RETRY_AFTER = 5;

export interface Auth {
  /** The caller who made a request, or the answer that refuses it. */
  authenticate(request: Request): Promise<Caller | Response>;
  /** Where clients get tokens (RFC 9728), for the server that `request` reached; undefined where there is nothing to say. */
  metadata(request: Request): OAuthProtectedResourceMetadata | undefined;
}

export function createAuth(config: AuthConfig, log: Log): Auth {
  switch (config.AUTH_MODE) {
    case "none":
      return { authenticate: async () => ANYONE, metadata: () => undefined };
    case "bearer": {
      const verifier = new BearerVerifier(config.BEARER_TOKENS);
      return {
        authenticate: (request) => authenticate(request, (token) => verifier.verify(token), {}, log),
        metadata: () => undefined,
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
      const resourceMetadataUrl = getOAuthProtectedResourceMetadataUrl(resource);
      const verify = (token: string) => verifier.verify(token, OAUTH_AUDIENCE ?? resource.href);
      return authenticate(request, verify, { requiredScopes, resourceMetadataUrl }, log);
    },
    metadata: (request) =>
      buildOAuthProtectedResourceMetadata({
        oauthMetadata: { issuer } as Parameters<typeof buildOAuthProtectedResourceMetadata>[0]["oauthMetadata"],
        resourceServerUrl: resourceOf(request),
        scopesSupported: requiredScopes,
        resourceName: "Durable MCP tools",
      }),
  };
}

async function authenticate(
  request: Request,
  verifyAccessToken: (token: string) => Promise<AuthInfo>,
  options: { requiredScopes?: string[]; resourceMetadataUrl?: string },
  log: Log,
): Promise<Caller | Response> {
  try {
    const header = request.headers.get("authorization");
    const { extra } = await verifyBearerToken(header, { verifier: { verifyAccessToken }, ...options });
    return extra?.caller as Caller;
  } catch (error) {
    if (error instanceof OAuthError) return bearerAuthChallengeResponse(error, options);
    if (!(error instanceof KeysUnavailable)) throw error;
    log.error("tokens cannot be verified", { reason: error.message, error: describeError(error.cause) });
    const body = new OAuthError(OAuthErrorCode.TemporarilyUnavailable, `${error.message}. Try again later.`);
    return Response.json(body.toResponseObject(), { status: 503, headers: { "retry-after": String(RETRY_AFTER) } });
  }
}

const resourceOf = (request: Request): URL => new URL("/mcp", request.url);
