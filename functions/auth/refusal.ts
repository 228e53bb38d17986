/** The content of a token, and the responses to requests without an acceptable token. */
import type { Caller } from "../../core/author/index.ts";
import type { OAuthProtectedResourceMetadata } from "../../core/tools/index.ts";
import type * as sdk from "../sdk.ts";

/** The content of a verified access token. */
export interface Verified {
  caller: Caller;
  scopes: readonly string[];
  /** When the token expires, in milliseconds since the epoch; undefined for one that does not. */
  expires?: number;
}

/** The error codes of RFC 6750, and `missing` for a request without a token. */
type RefusalCode = "missing" | "invalid_request" | "invalid_token" | "insufficient_scope";

/** A token is not acceptable. The message is for its sender. */
export class TokenRefused extends Error {
  override name = "TokenRefused";
  readonly code: RefusalCode;

  constructor(message: string, code: RefusalCode = "invalid_token") {
    super(message);
    this.code = code;
  }
}

/** No token can be verified, as the keys of the authorization server are missing. */
export class KeysUnavailable extends Error {
  override name = "KeysUnavailable";
}

/** What a token must allow. */
export interface Demands {
  scopes?: readonly string[];
  /** The resource that the token must be for, with OAuth. */
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
 * The response that says what is wrong with a token and where to get another. The SDK has one too, but by RFC 6750 a request
 * without a token gets no error code.
 */
export async function refuse({ code, message }: TokenRefused, { scopes = [], resource }: Demands): Promise<Response> {
  const parameters = Object.entries({
    ...(code !== "missing" && { error: code, error_description: message }),
    ...(scopes.length > 0 && { scope: scopes.join(" ") }),
    ...(resource && { resource_metadata: (await import("../sdk.ts")).getOAuthProtectedResourceMetadataUrl(resource) }),
  }).map(([name, value]) => `${name}="${quotable(value)}"`);
  const body = { ...(code !== "missing" && { error: code }), error_description: message };
  const challenge = ["Bearer", parameters.join(", ")].join(" ").trim();
  return Response.json(body, { status: STATUS[code], headers: { "www-authenticate": challenge } });
}

/** Text for the quotes of a challenge. */
function quotable(text: string): string {
  return text.replaceAll('"', "'").replace(/[^\x20-\x5b\x5d-\x7e]/g, "?");
}

/** The response while no token can be verified. */
export function unavailable(reason: string): Response {
  const body = { error: "temporarily_unavailable", error_description: `${reason}. Try again later.` };
  return Response.json(body, { status: 503, headers: { "retry-after": "5" } });
}

/** Where to get tokens for `resource` (RFC 9728); `title` is its name for people. */
export async function metadataOf(
  title: string,
  resource: URL,
  issuer: string,
  scopes: readonly string[],
): Promise<OAuthProtectedResourceMetadata> {
  type OAuthMetadata = Parameters<typeof sdk.buildOAuthProtectedResourceMetadata>[0]["oauthMetadata"];
  return (await import("../sdk.ts")).buildOAuthProtectedResourceMetadata({
    oauthMetadata: { issuer } as OAuthMetadata,
    resourceServerUrl: resource,
    scopesSupported: [...scopes],
    resourceName: title,
  });
}
