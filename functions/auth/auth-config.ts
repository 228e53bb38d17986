/** The bindings that say how callers authenticate. */
import * as z from "zod";

/** The names of this machine in URLs, on which no certificate is needed. */
const LOOPBACK = ["localhost", "127.0.0.1", "[::1]"];

/** Whether a URL is one of a server on this machine. */
export function isLoopback(url: URL): boolean {
  return LOOPBACK.includes(url.hostname);
}

/** A URL whose answers can be trusted: HTTPS, or a server on this machine; with nobody's name or password in it. */
export const TrustedUrl = z.url({ error: "set it to a URL" }).superRefine((text, context) => {
  const url = URL.parse(text);
  if (!url) return context.addIssue("set it to a URL");
  if (url.username !== "" || url.password !== "") context.addIssue("it must not hold a user name or password");
  const isTrusted = url.protocol === "https:" || (url.protocol === "http:" && isLoopback(url));
  if (!isTrusted) context.addIssue("it must begin with https:");
});

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

/** One scope, as RFC 6749 has it. */
const scope = z.string().regex(/^[\x21\x23-\x5b\x5d-\x7e]+$/, "set it to one scope");

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
      /** What its tokens for this server name in `aud`; the configured URL of `/mcp` when not set. */
      OAUTH_AUDIENCE: z.string().min(1).optional(),
      /** The scopes that a token needs, whatever it is used for. */
      OAUTH_SCOPES: scopes.default(["mcp"]),
      /** The scope that a token needs besides to look at jobs, and to start, answer and stop them; none when not set. */
      OAUTH_READ_SCOPE: scope.optional(),
      OAUTH_WRITE_SCOPE: scope.optional(),
      /** What browsers that sign in are called there: a public client, whose redirect URI is that of `/jobs`. */
      OAUTH_CLIENT_ID: z.string().min(1).optional(),
      /** Which tokens are taken: any JWT for an access token, or RFC 9068's only. */
      OAUTH_TOKENS: z.enum(["jwt", "rfc9068"]).default("jwt"),
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
