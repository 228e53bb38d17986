/** Access tokens of an OAuth 2.1 authorization server: JWTs, verified with its published keys. */
import {
  createLocalJWKSet,
  decodeJwt,
  decodeProtectedHeader,
  errors,
  type JWTPayload,
  type JWTVerifyGetKey,
  type JWTVerifyOptions,
  jwtVerify,
} from "jose";
import { callerOf } from "../../core/author/index.ts";
import { oauthId } from "./admission.ts";
import type { OAuthConfig } from "./auth-config.ts";
import { type Keys, PublishedKeys } from "./keys.ts";
import { TokenRefused, type Verified } from "./refusal.ts";
import { isSameUrl } from "./same-url.ts";

/** Algorithms with public keys: those who can verify a token must not be able to make one. */
const ALGORITHMS = "RS256 RS384 RS512 PS256 PS384 PS512 ES256 ES384 ES512 EdDSA Ed25519".split(" ");

/** The tolerated difference between the clocks of the two servers, in seconds. */
const CLOCK_TOLERANCE_SECONDS = 5;

/** The accepted types: that of RFC 9068, `JWT` of widespread issuers, or none. Logout tokens and others have other types. */
const TOKEN_TYPES = ["at+jwt", "jwt"];

/** The claims that RFC 9068 requires, besides those that are always required. */
const RFC_9068_CLAIMS = ["client_id", "iat", "jti"];

export class OAuthVerifier {
  readonly #config: OAuthConfig;
  readonly #keys: PublishedKeys;

  constructor(config: OAuthConfig) {
    this.#config = config;
    this.#keys = new PublishedKeys(config.OAUTH_ISSUER, config.OAUTH_JWKS_URL);
  }

  /**
   * @throws {TokenRefused} for a token that is not acceptable, or not for `audience`
   * @throws {KeysUnavailable}
   */
  async verify(token: string, audience: string): Promise<Verified> {
    const strict = this.#config.OAUTH_TOKENS === "rfc9068";
    const { iss, aud } = this.#precheck(token);
    const options: JWTVerifyOptions = {
      // The library compares texts.
      issuer: String(iss),
      audience: [audience, ...[aud ?? []].flat().filter((one) => isSameUrl(String(one), audience))],
      algorithms: ALGORITHMS,
      requiredClaims: ["exp", "sub", ...(strict ? RFC_9068_CLAIMS : [])],
      clockTolerance: CLOCK_TOLERANCE_SECONDS,
      ...(strict && { typ: "at+jwt" }),
    };
    const keys = await this.#keys.get();
    const { sub, ...claims } = await this.#claims(token, options, keys);
    if (typeof sub !== "string" || sub === "") throw refusal('"sub" must be a non-empty string');
    return {
      caller: await callerOf(oauthId(this.#config.OAUTH_ISSUER, sub)),
      scopes: scopesOf(claims),
      expires: (claims.exp ?? 0) * 1_000,
    };
  }

  /** The claims of a token, unverified. Refuses tokens that no key can make acceptable, before keys are fetched for them. */
  #precheck(token: string): JWTPayload {
    const [header, claims] = orRefused(() => [decodeProtectedHeader(token), decodeJwt(token)]);
    if (!ALGORITHMS.includes(header.alg ?? "")) throw refusal('"alg" is none that is accepted');
    const type = header.typ === undefined ? "jwt" : String(header.typ).toLowerCase();
    if (!TOKEN_TYPES.includes(type.replace(/^application\//, "")))
      throw refusal('"typ" is not that of an access token');
    if (!isSameUrl(String(claims.iss), this.#config.OAUTH_ISSUER)) throw refusal('unexpected "iss" claim value');
    if (typeof claims.exp !== "number" || claims.exp < Date.now() / 1_000 - CLOCK_TOLERANCE_SECONDS) {
      throw refusal('"exp" claim timestamp check failed');
    }
    return claims;
  }

  async #claims(token: string, options: JWTVerifyOptions, keys: Keys): Promise<JWTPayload> {
    try {
      return await verified(token, options, createLocalJWKSet(keys.set));
    } catch (error) {
      // Some issuers replace a key without a new id.
      if (error instanceof errors.JWKSNoMatchingKey || error instanceof errors.JWSSignatureVerificationFailed) {
        const newer = await this.#keys.newerThan(keys);
        if (newer.at > keys.at) return this.#claims(token, options, newer);
      }
      if (error instanceof errors.JOSEError) throw refusal(error.message);
      throw error;
    }
  }
}

/** The claims of a token that one of the keys verifies: several may fit a token or a key without an id. */
async function verified(token: string, options: JWTVerifyOptions, keys: JWTVerifyGetKey): Promise<JWTPayload> {
  try {
    return (await jwtVerify(token, keys, options)).payload;
  } catch (error) {
    if (!(error instanceof errors.JWKSMultipleMatchingKeys)) throw error;
    for await (const key of error) {
      try {
        return (await jwtVerify(token, key, options)).payload;
      } catch (refused) {
        if (!(refused instanceof errors.JWSSignatureVerificationFailed)) throw refused;
      }
    }
    throw new errors.JWSSignatureVerificationFailed();
  }
}

function orRefused<Result>(decode: () => Result): Result {
  try {
    return decode();
  } catch {
    throw refusal("it is not a JWT");
  }
}

const refusal = (reason: string) => new TokenRefused(`The access token is not accepted: ${reason}`);

function scopesOf({ scope, scp }: JWTPayload): string[] {
  const grantedScopes = scope ?? scp;
  return typeof grantedScopes === "string"
    ? grantedScopes.split(" ")
    : Array.isArray(grantedScopes)
      ? grantedScopes.map(String)
      : [];
}
