/** Who is an operator: the holder of an operator's token, a caller whose OAuth token says so, or this machine's user. */
import { parse, serialize } from "hono/utils/cookie";
import type { OperatorEnv } from "../../core/jobs/operating/worker-report.ts";
import { sha256Of } from "../../core/store/sha256.ts";
import type { Edge } from "../app/parts.ts";
import { isLoopback } from "../auth/auth-config.ts";
import { isBlocked } from "../auth/blocked.ts";
import { bearerIn, isSame } from "../auth/secret.ts";
import { SESSION } from "../pages/cookies.ts";
import { isOwnPage } from "../pages/sessions.ts";

const PURPOSE = "operator";
const cookieName = (isSecure: boolean) => (isSecure ? "__Host-operator" : "operator");

/** Headers that show that another machine has passed the request on. */
const PASSED_ON = ["forwarded", "x-forwarded-for", "x-forwarded-host", "x-real-ip", "cf-connecting-ip", "cf-ray"];

const refusal = (status: number, error: string) =>
  Response.json({ error }, { status, headers: { "cache-control": "no-store" } });

/** The operator who makes a request, or the response that refuses it. */
export async function operatorOf(request: Request, env: OperatorEnv, edge: Edge): Promise<string | Response> {
  const { headers } = request;
  if (isLocal(request, env, edge)) {
    const site = headers.get("sec-fetch-site");
    return site === null || site === "same-origin" ? "this machine" : refusal(403, "Only a page of this server may.");
  }
  if (!env.OPERATOR_TOKENS && !env.OAUTH_OPERATE_SCOPE) return refusal(404, "Not found.");
  const token = bearerIn(headers);
  const who = token === undefined ? await inSession(request, env, edge) : await holderOf(await sha256Of(token), env);
  if (who !== undefined) return who;
  const scope = env.OAUTH_OPERATE_SCOPE;
  if (scope && edge.auth.presentsToken(await edge.pages.withSession(request))) {
    const found = await edge.auth.authenticate(await edge.pages.withSession(request));
    if (!(found instanceof Response)) {
      const { caller, scopes } = found;
      if (!scopes.includes(scope)) return refusal(403, `This takes the scope ${scope}.`);
      // Without this check a blocked operator could lift the block.
      const set = await edge.settings?.();
      return set && isBlocked(caller, set.blocked) ? refusal(403, "This caller is blocked.") : caller.label;
    }
  }
  return refusal(401, "Sign in with an operator's token.");
}

function isLocal(request: Request, { OPERATE }: OperatorEnv, edge: Edge): boolean {
  const isOpen = OPERATE === "local" && edge.config.auth.AUTH_MODE === "none";
  return isOpen && isLoopback(new URL(request.url)) && !PASSED_ON.some((name) => request.headers.has(name));
}

/** The cookie that signs a browser in with an operator's token, or out; undefined for a wrong token, or without a seal. */
export async function session(request: Request, env: OperatorEnv, edge: Edge): Promise<string | undefined> {
  const isSecure = request.url.startsWith("https:");
  const of = (value: string, maxAge: number) =>
    serialize(cookieName(isSecure), value, { path: "/", maxAge, secure: isSecure, httpOnly: true, sameSite: "Strict" });
  if (request.method === "DELETE") return of("", 0);
  const hash = await sha256Of(bearerIn(request.headers) ?? "");
  if ((await holderOf(hash, env)) === undefined) return undefined;
  // The session holds the token's hash, so it ends when the token is no longer listed.
  const sealed = await edge.pages.seal?.close(PURPOSE, hash, Date.now() + SESSION);
  return sealed && of(sealed, SESSION / 1_000);
}

async function inSession(request: Request, env: OperatorEnv, edge: Edge): Promise<string | undefined> {
  const name = cookieName(request.url.startsWith("https:"));
  const sealed = isOwnPage(request) ? parse(request.headers.get("cookie") ?? "", name)[name] : undefined;
  const opened = sealed === undefined ? undefined : await edge.pages.seal?.open(PURPOSE, sealed);
  return opened && holderOf(String(opened.value), env);
}

const utf8 = new TextEncoder();

/** The name that belongs to the hash of a token. All are compared, so that the time taken does not reveal which one matched. */
export async function holderOf(hash: string, { OPERATOR_TOKENS }: OperatorEnv): Promise<string | undefined> {
  const listed: unknown = OPERATOR_TOKENS ? JSON.parse(OPERATOR_TOKENS) : [];
  const tokens: { name?: unknown; sha256?: unknown }[] = Array.isArray(listed) ? listed : [];
  const [found] = tokens.filter(({ sha256 }) => isSame(utf8.encode(String(sha256).toLowerCase()), utf8.encode(hash)));
  return found && String(found.name ?? "operator");
}
