/** Who may use the server, as whom, and for what. */
import { ANYONE, type Caller } from "../../core/definitions/caller.ts";
import type { OAuthProtectedResourceMetadata } from "../../core/tools/mcp.ts";
import { describeError, type EdgeLog } from "../http/log.ts";
import type { Access } from "../http/request.ts";
import { type AuthConfig, isLoopback, type OAuthConfig } from "./auth-config.ts";
import { BearerVerifier } from "./bearer.ts";
import { KeysUnavailable } from "./keys.ts";
import { OAuthVerifier } from "./oauth.ts";
import { type Demands, metadataOf, refuse, unavailable } from "./refusal.ts";
import { TokenRefused, type Verified } from "./token.ts";

export interface Authenticated {
  caller: Caller;
  /** Those of the token. */
  scopes: readonly string[];
  /** When the token expires, in milliseconds since the epoch; undefined for one that does not. */
  expires?: number;
}

export interface Auth {
  /** Whether a request carries what may be a token. */
  presentsToken(request: Request): boolean;
  /** The caller who made a request, with what its token says, or the answer that refuses it. */
  authenticate(request: Request): Promise<Authenticated | Response>;
  /** The answer that refuses a request whose token does not allow what it does, or undefined. */
  authorize(request: Request, scopes: readonly string[], access: ReadonlySet<Access>): Promise<Response | undefined>;
  /** Where clients get tokens (RFC 9728), for the server that `request` reached; undefined where there is nothing to say. */
  metadata(request: Request): Promise<OAuthProtectedResourceMetadata | undefined>;
}

/** Where the deployment is reached, as its operator says. */
export interface PublicAddress {
  /** Its origin. */
  PUBLIC_URL?: string | undefined;
  /** The names that a request may be addressed to. */
  ALLOWED_HOSTS?: readonly string[] | undefined;
  /** Labels and subjects of callers who are let in no more. */
  BLOCKED_CALLERS?: readonly string[] | undefined;
}

/** @param title what people know the server by */
export function createAuth(config: AuthConfig, place: PublicAddress, log: EdgeLog, title: string): Auth {
  switch (config.AUTH_MODE) {
    case "none":
      return {
        presentsToken: () => false,
        authenticate: async () => ({ caller: ANYONE, scopes: [] }),
        authorize: async () => undefined,
        metadata: async () => undefined,
      };
    case "bearer": {
      const verifier = new BearerVerifier(config.BEARER_TOKENS);
      return {
        presentsToken,
        authenticate: (request) => authenticate(request, (token) => verifier.verify(token), {}, place, log),
        authorize: async () => undefined,
        metadata: async () => undefined,
      };
    }
    case "oauth":
      return createResourceServer(config, place, log, title);
  }
}

/** A resource server as the MCP authorization specification has it. */
function createResourceServer(config: OAuthConfig, place: PublicAddress, log: EdgeLog, title: string): Auth {
  const verifier = new OAuthVerifier(config);
  const { OAUTH_ISSUER: issuer, OAUTH_AUDIENCE, OAUTH_SCOPES: always } = config;
  const forAccess: Record<Access, string | undefined> = {
    read: config.OAUTH_READ_SCOPE,
    write: config.OAUTH_WRITE_SCOPE,
  };
  // What a client asks for at first: enough to look around. To start a job it is told what more that takes.
  const first = [...new Set([...always, ...(forAccess.read === undefined ? [] : [forAccess.read])])];
  return {
    presentsToken,
    authenticate(request) {
      const resource = resourceOf(request, place);
      const verify = async (token: string) => {
        const verified = await verifier.verify(token, OAUTH_AUDIENCE ?? resource.href);
        if (always.every((scope) => verified.scopes.includes(scope))) return verified;
        throw new TokenRefused("A scope is missing", "insufficient_scope");
      };
      return authenticate(request, verify, { scopes: first, resource }, place, log);
    },
    async authorize(request, scopes, access) {
      const needed = [...access].flatMap((kind) => forAccess[kind] ?? []);
      const missing = needed.filter((scope) => !scopes.includes(scope));
      if (missing.length === 0) return undefined;
      // The next token is to be good for what this one is, too.
      const wanted = [
        ...first,
        ...Object.values(forAccess).filter((scope) => scope !== undefined && scopes.includes(scope)),
      ];
      const demands = {
        scopes: [...new Set([...wanted, ...missing])] as string[],
        resource: resourceOf(request, place),
      };
      return refuse(new TokenRefused(`This takes the scope ${missing.join(" and ")}`, "insufficient_scope"), demands);
    },
    async metadata(request) {
      return metadataOf(title, resourceOf(request, place), issuer, first);
    },
  };
}

/** What the SDK's `verifyBearerToken` does, without loading the SDK for a token that is good. */
async function authenticate(
  request: Request,
  verify: (token: string) => Promise<Verified>,
  demands: Demands,
  { BLOCKED_CALLERS: blocked = [] }: PublicAddress,
  log: EdgeLog,
): Promise<Authenticated | Response> {
  try {
    const { caller, subject, scopes, expires } = await verify(tokenIn(request));
    if (blocked.includes(caller.label) || blocked.includes(subject)) return BLOCKED();
    return { caller, scopes, ...(expires !== undefined && { expires }) };
  } catch (error) {
    if (error instanceof TokenRefused) return refuse(error, demands);
    if (!(error instanceof KeysUnavailable)) throw error;
    log.error("tokens cannot be verified", { reason: error.message, error: describeError(error.cause) });
    return unavailable(error.message);
  }
}

/** Its token is good, and another would be no better: no challenge goes with this. */
const BLOCKED = () =>
  Response.json({ error: "access_denied", error_description: "This caller is blocked." }, { status: 403 });

const presentsToken = ({ headers }: Request) => headers.has("authorization");

/** A token's characters, by RFC 6750. */
const TOKEN = /^Bearer +([\w\-.~+/]+=*) *$/i;

/** @throws {TokenRefused} when there is none */
function tokenIn({ headers }: Request): string {
  const header = headers.get("authorization");
  if (header === null || !/^Bearer( |$)/i.test(header)) {
    throw new TokenRefused("A token is needed: Authorization: Bearer TOKEN", "missing");
  }
  const token = TOKEN.exec(header)?.[1];
  if (token === undefined) throw new TokenRefused("Authorization must be 'Bearer TOKEN'", "invalid_request");
  return token;
}

/**
 * The URL of `/mcp`, which tokens are for. It is what the operator configured, never what a request says alone: else a
 * token for another server of the same issuer would be taken when it comes with that server's name. Without either a
 * name or a URL that is configured the audience is, and what this says is for the client that asks only.
 */
export function resourceOf(request: Request, { PUBLIC_URL, ALLOWED_HOSTS }: PublicAddress): URL {
  if (PUBLIC_URL !== undefined) return new URL("/mcp", PUBLIC_URL);
  const reached = new URL("/mcp", request.url);
  if (ALLOWED_HOSTS === undefined || isLoopback(reached)) return reached;
  // The name is one of the allowed: it was checked before.
  return new URL("/mcp", `https://${reached.hostname}`);
}
