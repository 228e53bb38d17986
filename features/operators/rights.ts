/** Who is an operator: the holder of an operator's token, a caller whose OAuth token says so, or this machine's user. */
import { sha256Of } from "../../core/resonate/index.ts";
import { isLoopback } from "../../functions/auth/auth-config.ts";
import { presentsToken } from "../../functions/auth/authentication.ts";
import { bearerIn, holderOf, tokensIn } from "../../functions/auth/secret.ts";
import { cookieOf, cookieOfRequest, isOwnPage, SESSION_MS } from "../../functions/http/cookies.ts";
import type { OperatorOptions } from "./options.ts";

const SEAL_PURPOSE = "operator";
const cookieName = (isSecure: boolean) => (isSecure ? "__Host-operator" : "operator");

/** Headers that show that another machine has passed the request on. */
const PROXY_HEADERS = ["forwarded", "x-forwarded-for", "x-forwarded-host", "x-real-ip", "cf-connecting-ip", "cf-ray"];

const refusal = (status: number, error: string) =>
  Response.json({ error }, { status, headers: { "cache-control": "no-store" } });

/** The operator who makes a request, or the response that refuses it. */
export async function operatorOf(request: Request, options: OperatorOptions): Promise<string | Response> {
  const { headers } = request;
  const { OPERATOR_TOKENS, OAUTH_OPERATE_SCOPE: scope } = options.variables;
  if (isLocal(request, options)) {
    const site = headers.get("sec-fetch-site");
    return site === null || site === "same-origin" ? "this machine" : refusal(403, "Only a page of this server may.");
  }
  if (!OPERATOR_TOKENS && !scope) return refusal(404, "Not found.");
  const token = bearerIn(headers);
  const who = token === undefined ? await inSession(request, options) : operatorBy(await sha256Of(token), options);
  if (who !== undefined) return who;
  const signedIn = scope ? await options.pages.withSession(request) : request;
  if (scope && options.auth && presentsToken(signedIn)) {
    const found = await options.auth.authenticate(signedIn);
    if (!(found instanceof Response)) {
      const { caller, scopes } = found;
      if (!scopes.includes(scope)) return refusal(403, `This takes the scope ${scope}.`);
      // Without this check a blocked operator could lift the block.
      const reason = await options.refusalOf(caller.key);
      return reason === undefined ? caller.label : refusal(403, `This caller ${reason}.`);
    }
  }
  return refusal(401, "Sign in with an operator's token.");
}

function isLocal(request: Request, { variables, auth }: OperatorOptions): boolean {
  const isOpen = variables.OPERATE === "local" && !auth;
  return isOpen && isLoopback(new URL(request.url)) && !PROXY_HEADERS.some((name) => request.headers.has(name));
}

/** The cookie that signs a browser in with an operator's token, or out; undefined for a wrong token, or without a seal. */
export async function session(request: Request, options: OperatorOptions): Promise<string | undefined> {
  const isSecure = request.url.startsWith("https:");
  const of = (value: string, until: number) => cookieOf(cookieName(isSecure), value, until, "/", isSecure);
  if (request.method === "DELETE") return of("", 0);
  const hash = await sha256Of(bearerIn(request.headers) ?? "");
  if (operatorBy(hash, options) === undefined) return undefined;
  // The session holds the token's hash, so it ends when the token is no longer listed.
  const until = Date.now() + SESSION_MS;
  const sealed = await options.pages.seal?.close(SEAL_PURPOSE, hash, until);
  return sealed && of(sealed, until);
}

async function inSession(request: Request, options: OperatorOptions): Promise<string | undefined> {
  const name = cookieName(request.url.startsWith("https:"));
  const sealed = isOwnPage(request) ? cookieOfRequest(request, name) : undefined;
  const opened = sealed === undefined ? undefined : await options.pages.seal?.open(SEAL_PURPOSE, sealed);
  return opened && operatorBy(String(opened.value), options);
}

/** The operator whose token has this hash. */
const operatorBy = (hash: string, { variables }: OperatorOptions) =>
  holderOf(hash, tokensIn(variables.OPERATOR_TOKENS));
