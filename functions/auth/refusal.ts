/** What clients are told who have no token that is accepted. Loaded when it is needed: see `protocol.ts`. */
import {
  buildOAuthProtectedResourceMetadata,
  getOAuthProtectedResourceMetadataUrl,
  OAuthError,
  OAuthErrorCode,
  type OAuthProtectedResourceMetadata,
} from "@modelcontextprotocol/server";
import type { RefusalCode, TokenRefused } from "./token.ts";

/** In seconds. */
const RETRY_AFTER = 5;

/** What a token has to be good for. */
export interface Demands {
  scopes?: readonly string[];
  /** What it has to be for, where an authorization server gives them out. */
  resource?: URL;
}

/** By RFC 6750, section 3.1, and the MCP authorization specification. */
const STATUS: Record<RefusalCode, number> = {
  missing: 401,
  invalid_request: 400,
  invalid_token: 401,
  insufficient_scope: 403,
};

/**
 * The answer that says what is wrong with a token, and where to get another. Not the SDK's: to a request without a
 * token RFC 6750 has no error code said.
 */
export function refuse({ code, message }: TokenRefused, { scopes = [], resource }: Demands): Response {
  const parameters = Object.entries({
    ...(code !== "missing" && { error: code, error_description: message }),
    ...(scopes.length > 0 && { scope: scopes.join(" ") }),
    ...(resource && { resource_metadata: getOAuthProtectedResourceMetadataUrl(resource) }),
  }).map(([name, value]) => `${name}="${quotable(value)}"`);
  const body = { ...(code !== "missing" && { error: code }), error_description: message };
  const challenge = ["Bearer", parameters.join(", ")].join(" ").trim();
  return Response.json(body, { status: STATUS[code], headers: { "www-authenticate": challenge } });
}

/** What may stand in the quotes of a challenge. */
function quotable(text: string): string {
  return text.replaceAll('"', "'").replace(/[^\x20-\x5b\x5d-\x7e]/g, "?");
}

/** The answer while no token can be verified. */
export function unavailable(reason: string): Response {
  const body = new OAuthError(OAuthErrorCode.TemporarilyUnavailable, `${reason}. Try again later.`).toResponseObject();
  return Response.json(body, { status: 503, headers: { "retry-after": String(RETRY_AFTER) } });
}

/** Where to get tokens for `resource`, which people know as `title` (RFC 9728). */
export function metadataOf(
  title: string,
  resource: URL,
  issuer: string,
  scopes: readonly string[],
): OAuthProtectedResourceMetadata {
  type OAuthMetadata = Parameters<typeof buildOAuthProtectedResourceMetadata>[0]["oauthMetadata"];
  return buildOAuthProtectedResourceMetadata({
    oauthMetadata: { issuer } as OAuthMetadata,
    resourceServerUrl: resource,
    scopesSupported: [...scopes],
    resourceName: title,
  });
}
