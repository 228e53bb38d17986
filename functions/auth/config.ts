/** The bindings that say how callers authenticate. */
import * as z from "zod";

/** A URL whose answers can be trusted: HTTPS, or a server on this machine. */
export const TrustedUrl = z
  .url({ error: "set it to a URL" })
  .refine(
    (url) => /^https:/i.test(url) || /^http:\/\/(localhost|127\.0\.0\.1|\[::1\])([:/]|$)/i.test(url),
    "it must begin with https:",
  );

/** What the secret holds of a token: a name, which is the caller and may have several, and the SHA-256 of the token. */
const Token = z.object({
  name: z.string().regex(/^[\w.@-]{1,64}$/),
  /** In hexadecimal. */
  sha256: z.string().regex(/^[0-9a-f]{64}$/i),
});
export type Token = z.infer<typeof Token>;

const TOKENS = 'set it to a JSON list of {"name", "sha256"}, as `npm run token` prints them';

const Tokens = z
  .string({ error: TOKENS })
  .transform((text, context): unknown => {
    try {
      return JSON.parse(text);
    } catch {
      context.addIssue(TOKENS);
      return z.NEVER;
    }
  })
  .pipe(z.array(Token, { error: TOKENS }).min(1, TOKENS));

/** Separated by spaces. */
const scopes = z.string().transform((text) => text.split(/\s+/).filter((scope) => scope !== ""));

export const AuthConfig = z.discriminatedUnion(
  "AUTH_MODE",
  [
    z.object({
      /** Access tokens of an OAuth 2.1 authorization server. */
      AUTH_MODE: z.literal("oauth"),
      /** The authorization server, exactly as its tokens name it in `iss`. */
      OAUTH_ISSUER: TrustedUrl,
      /** Where its keys are; found through its metadata when not set. */
      OAUTH_JWKS_URL: TrustedUrl.optional(),
      /** What its tokens for this server name in `aud`; the URL of `/mcp` when not set. */
      OAUTH_AUDIENCE: z.string().min(1).optional(),
      /** The scopes a token needs. */
      OAUTH_SCOPES: scopes.default(["mcp"]),
    }),
    z.object({
      /** Tokens that the operator hands out. */
      AUTH_MODE: z.literal("bearer"),
      BEARER_TOKENS: Tokens,
    }),
    /** Whoever reaches the server may use it, and all are one caller. */
    z.object({ AUTH_MODE: z.literal("none") }),
  ],
  {
    error:
      "set it to oauth (access tokens of an OAuth authorization server), bearer (tokens that you hand out) or " +
      "none (whoever reaches this server may use it, and all see the same jobs)",
  },
);
export type AuthConfig = z.infer<typeof AuthConfig>;
export type OAuthConfig = Extract<AuthConfig, { AUTH_MODE: "oauth" }>;
