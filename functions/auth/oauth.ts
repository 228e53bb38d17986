/** Access tokens of an OAuth 2.1 authorization server: JWTs, verified by the server's published keys. */
import { createRemoteJWKSet, errors, type JWTPayload, type JWTVerifyGetKey, jwtVerify } from "jose";
import { allowInsecureRequests, discoveryRequest, processDiscoveryResponse } from "oauth4webapi";
import { callerOf } from "../caller.ts";
import { type OAuthConfig, TrustedUrl } from "./config.ts";
import { TokenRefused, type Verified } from "./token.ts";

/** Those with a public key: a token cannot be made by whoever can verify it. */
const ALGORITHMS = "RS256 RS384 RS512 PS256 PS384 PS512 ES256 ES384 ES512 EdDSA Ed25519".split(" ");

/** How far this clock and the authorization server's may be apart, in seconds. */
const CLOCK_TOLERANCE = 5;

/** How long after they were fetched the keys are not fetched again, whatever key a token names, in milliseconds. */
const COOLDOWN = 5_000;

/** How long a request to the authorization server may take, in milliseconds. */
const TIMEOUT = 5_000;

/** Whether a token is genuine cannot be told at present. */
export class KeysUnavailable extends Error {
  override name = "KeysUnavailable";
}

/** Failures to get the keys; every other error of the library is about the token. */
const KEY_ERRORS = new Set(["ERR_JWKS_TIMEOUT", "ERR_JWKS_INVALID", "ERR_JWK_INVALID", "ERR_JOSE_GENERIC"]);

export class OAuthVerifier {
  readonly #config: OAuthConfig;
  #keys: JWTVerifyGetKey | undefined;

  constructor(config: OAuthConfig) {
    this.#config = config;
  }

  /**
   * Verifies a token for `audience`.
   *
   * @throws {TokenRefused} when the token is not acceptable
   * @throws {KeysUnavailable}
   */
  async verify(token: string, audience: string): Promise<Verified> {
    const { sub = "", ...claims } = await this.#claims(token, audience);
    const caller = await callerOf(JSON.stringify([this.#config.OAUTH_ISSUER, sub]));
    return { caller, scopes: scopesOf(claims) };
  }

  async #claims(token: string, audience: string): Promise<JWTPayload> {
    try {
      this.#keys ??= createRemoteJWKSet(await this.#keysUrl(), {
        cooldownDuration: COOLDOWN,
        timeoutDuration: TIMEOUT,
      });
      const { payload } = await jwtVerify(token, this.#keys, {
        issuer: this.#config.OAUTH_ISSUER,
        audience,
        algorithms: ALGORITHMS,
        requiredClaims: ["exp", "sub"],
        clockTolerance: CLOCK_TOLERANCE,
      });
      return payload;
    } catch (error) {
      if (!(error instanceof errors.JOSEError) || KEY_ERRORS.has(error.code)) {
        throw new KeysUnavailable("the keys of the authorization server could not be fetched", { cause: error });
      }
      throw new TokenRefused(`The access token is not accepted: ${error.message}`);
    }
  }

  /** Where the keys are, by the authorization server's metadata: OpenID Connect's, or else RFC 8414's. */
  async #keysUrl(): Promise<URL> {
    const { OAUTH_ISSUER, OAUTH_JWKS_URL } = this.#config;
    if (OAUTH_JWKS_URL !== undefined) return new URL(OAUTH_JWKS_URL);
    const issuer = new URL(OAUTH_ISSUER);
    const discover = async (algorithm: "oidc" | "oauth2") => {
      const options = { algorithm, signal: AbortSignal.timeout(TIMEOUT), [allowInsecureRequests]: true };
      return processDiscoveryResponse(issuer, await discoveryRequest(issuer, options));
    };
    const { jwks_uri } = await discover("oidc").catch(() => discover("oauth2"));
    return new URL(TrustedUrl.parse(jwks_uri));
  }
}

function scopesOf({ scope, scp }: JWTPayload): string[] {
  const granted = scope ?? scp;
  return typeof granted === "string" ? granted.split(" ") : Array.isArray(granted) ? granted.map(String) : [];
}
