/** What clients are told who have no token that is accepted. Loaded when it is needed: see `protocol.ts`. */
import {
  bearerAuthChallengeResponse,
  buildOAuthProtectedResourceMetadata,
  getOAuthProtectedResourceMetadataUrl,
  OAuthError,
  OAuthErrorCode,
  type OAuthProtectedResourceMetadata,
} from "@modelcontextprotocol/server";
import type { TokenRefused } from "./token.ts";

/** In seconds. */
const RETRY_AFTER = 5;

/** What a token has to be good for. */
export interface Demands {
  requiredScopes?: string[];
  /** What it has to be for, where an authorization server gives them out. */
  resource?: URL;
}

/** The answer that says what is wrong with a token, and where to get another. */
export function refuse({ code, message }: TokenRefused, { requiredScopes, resource }: Demands): Response {
  return bearerAuthChallengeResponse(new OAuthError(code, message), {
    ...(requiredScopes && { requiredScopes }),
    ...(resource && { resourceMetadataUrl: getOAuthProtectedResourceMetadataUrl(resource) }),
  });
}

/** The answer while no token can be verified. */
export function unavailable(reason: string): Response {
  const body = new OAuthError(OAuthErrorCode.TemporarilyUnavailable, `${reason}. Try again later.`).toResponseObject();
  return Response.json(body, { status: 503, headers: { "retry-after": String(RETRY_AFTER) } });
}

/** Where to get tokens for `resource` (RFC 9728). */
export function metadataOf(resource: URL, issuer: string, scopes: string[]): OAuthProtectedResourceMetadata {
  type OAuthMetadata = Parameters<typeof buildOAuthProtectedResourceMetadata>[0]["oauthMetadata"];
  return buildOAuthProtectedResourceMetadata({
    oauthMetadata: { issuer } as OAuthMetadata,
    resourceServerUrl: resource,
    scopesSupported: scopes,
    resourceName: "Durable MCP tools",
  });
}
