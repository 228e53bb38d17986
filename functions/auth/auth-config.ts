/** The bindings that configure authentication. */
import * as z from "zod";
import { jsonOf } from "../../core/resonate/index.ts";

/** The names of this machine in URLs, for which no certificate is needed. */
const LOOPBACK_NAMES = ["localhost", "127.0.0.1", "[::1]"];

export function isLoopback(url: URL): boolean {
  return LOOPBACK_NAMES.includes(url.hostname);
}

/** A URL whose answers can be trusted: HTTPS or a server on this machine, without credentials. */
export const TrustedUrl = z.url({ error: "set it to a URL" }).superRefine((text, context) => {
  const url = URL.parse(text);
  if (!url) return context.addIssue("set it to a URL");
  if (url.username !== "" || url.password !== "") context.addIssue("it must not hold a user name or password");
  const isTrusted = url.protocol === "https:" || (url.protocol === "http:" && isLoopback(url));
  if (!isTrusted) context.addIssue("it must begin with https:");
});

/** A token that the operator hands out: the name of its caller, who may have several, and its SHA-256. */
const Token = z.object({
  name: z.string().regex(/^[\w.@-]{1,64}$/),
  /** In hexadecimal. */
  sha256: z.string().regex(/^[0-9a-f]{64}$/i),
});
export type Token = z.infer<typeof Token>;

const TOKENS_ADVICE = 'set it to a JSON list of {"name", "sha256"}, as `npm run token` prints them';

const Tokens = z
  .string({ error: TOKENS_ADVICE })
  .transform(jsonOf)
  .pipe(z.array(Token, { error: TOKENS_ADVICE }).min(1, TOKENS_ADVICE));

/** Separated by spaces. */
const scopes = z.string().transform((text) => text.split(/\s+/).filter((scope) => scope !== ""));

/** One scope, by RFC 6749. */
const scope = z.string().regex(/^[\x21\x23-\x5b\x5d-\x7e]+$/, "set it to one scope");

export const AuthConfig = z.discriminatedUnion(
  "AUTH_MODE",
  [
    z.object({
      AUTH_MODE: z.literal("oauth"),
      /** The authorization server, as in the `iss` claim of its tokens. */
      OAUTH_ISSUER: TrustedUrl,
      /** The URL of its keys; found through its metadata when not set. */
      OAUTH_JWKS_URL: TrustedUrl.optional(),
      /** The `aud` claim of tokens for this server; the configured URL of `/mcp` when not set. */
      OAUTH_AUDIENCE: z.string().min(1).optional(),
      /** The scopes that every token needs. */
      OAUTH_SCOPES: scopes.default(["mcp"]),
      /** The further scopes for looking at jobs, and for starting, answering and stopping them; none when not set. */
      OAUTH_READ_SCOPE: scope.optional(),
      OAUTH_WRITE_SCOPE: scope.optional(),
      /** The client id of browsers that sign in: a public client whose redirect URI is that of `/jobs`. */
      OAUTH_CLIENT_ID: z.string().min(1).optional(),
      /** Which tokens are accepted: any JWT that may be an access token, or only those of RFC 9068. */
      OAUTH_TOKENS: z.enum(["jwt", "rfc9068"]).default("jwt"),
    }),
    z.object({
      AUTH_MODE: z.literal("bearer"),
      BEARER_TOKENS: Tokens,
    }),
    /** Anyone who reaches the server may use it, and all are one caller. */
    z.object({ AUTH_MODE: z.literal("none") }),
  ],
  {
    error:
      "set it to oauth (access tokens of an OAuth authorization server), bearer (tokens that you hand out) or " +
      "none (anyone who reaches this server may use it, and all see the same jobs)",
  },
);
export type AuthConfig = z.infer<typeof AuthConfig>;
export type OAuthConfig = Extract<AuthConfig, { AUTH_MODE: "oauth" }>;
