/** Access to pages: sessions of browsers, and links to single jobs. */
import { parse, serialize } from "hono/utils/cookie";
import type { Tool } from "../../core/author/tool.ts";
import type { Caller } from "../../core/definitions/caller.ts";
import { CALLBACKS } from "../../core/store/codec.ts";
import type { AuthConfig } from "../auth/auth-config.ts";
import { isBlocked } from "../auth/blocked.ts";
import type { Assets } from "../http/assets.ts";
import type { Identity } from "../mcp/identity.ts";
import type { TaskHandles } from "../tasks/handle.ts";
import { heldBack } from "./held-back.ts";
import { Seal } from "./seal.ts";

/** How long a link to a job is valid, and how long a browser stays signed in, in milliseconds. */
const LINK = 7 * 24 * 3_600_000;
const SESSION = 12 * 3_600_000;

/**
 * The prefix has browsers take the cookie from this host alone, over TLS: no other host of the domain can set one. Without
 * TLS, as on one machine, there is no such cookie.
 */
const sessionCookie = (isSecure: boolean) => (isSecure ? "__Host-session" : "session");
/** A link is exchanged for a cookie with a path of its own, so a browser with many links sends only the one it uses. */
const LINK_COOKIE = "link";

/** The job to which a link leads, and whose it is. */
interface Linked {
  job: string;
  caller: Caller;
}

export interface Site {
  tools: readonly Tool[];
  identity: Identity;
  handles: TaskHandles | undefined;
}

export interface PagesConfig {
  PUBLIC_URL?: string | undefined;
  /** Seals links and sessions; without it there are none. */
  VIEW_KEY?: string | undefined;
  VIEW_LINKS: "on" | "off";
  BLOCKED_CALLERS?: readonly string[] | undefined;
  /** The files that browsers load; undefined in a deployment without pages. */
  ASSETS?: Assets | undefined;
  auth: AuthConfig;
  /** `local` where who is at this machine operates the deployment. */
  OPERATE?: string | undefined;
}

export class Pages {
  readonly site: Site;
  readonly config: PagesConfig;
  /** Undefined where browsers cannot sign in. */
  readonly seal: Seal | undefined;

  constructor(config: PagesConfig, site: Site) {
    this.site = site;
    this.config = config;
    this.seal = config.VIEW_KEY === undefined ? undefined : new Seal(config.VIEW_KEY);
  }

  get files(): Assets | undefined {
    return this.config.ASSETS;
  }

  /** The origin of the authorization server, where browsers sign in there. */
  get issuer(): string | undefined {
    const { auth } = this.config;
    return auth.AUTH_MODE === "oauth" && auth.OAUTH_CLIENT_ID ? new URL(auth.OAUTH_ISSUER).origin : undefined;
  }

  /** The public description of the deployment. */
  get about() {
    const { tools, identity } = this.site;
    const { PUBLIC_URL, OPERATE, auth } = this.config;
    const { AUTH_MODE } = auth;
    const held = AUTH_MODE === "none" && OPERATE === "local" ? heldBack(tools) : [];
    return {
      ...identity.info,
      description: identity.description,
      ...(PUBLIC_URL !== undefined && { url: new URL("/mcp", PUBLIC_URL).href }),
      auth: AUTH_MODE,
      ...(AUTH_MODE === "oauth" && { issuer: auth.OAUTH_ISSUER, client_id: auth.OAUTH_CLIENT_ID }),
      ...(held.length > 0 && { held }),
      sign_in: this.seal !== undefined && (AUTH_MODE === "bearer" || this.issuer !== undefined),
      tools: tools.map(({ job, listing: { name, title, description, inputSchema, annotations } }) => {
        return { name, ...texts({ title, description }), inputSchema, annotations, ...(job && { kind: job.kind }) };
      }),
    };
  }

  /** The address of a job's page for its caller alone; undefined where links are off. */
  async urlOf(job: string, caller: Caller): Promise<string | undefined> {
    const { PUBLIC_URL, VIEW_LINKS, ASSETS, auth } = this.config;
    // Never from the host in a request, which its sender chooses.
    if (PUBLIC_URL === undefined || VIEW_LINKS === "off" || !ASSETS) return undefined;
    if (auth.AUTH_MODE === "none") return new URL(pathOf(job), PUBLIC_URL).href;
    if (!this.seal) return undefined;
    const linked: Linked = { job, caller };
    return new URL(`/view/${await this.seal.close("link", linked, Date.now() + LINK)}`, PUBLIC_URL).href;
  }

  /** The promise of a callback's address, and when its job times out; undefined for a void address. */
  async callback(sealed: string): Promise<{ id: string; until: number } | undefined> {
    const opened = await this.seal?.open(CALLBACKS, sealed);
    return opened && { id: String(opened.value), until: opened.until };
  }

  /** Exchanges a link for a path and a cookie; undefined for a void link. */
  async follow(sealed: string, isSecure: boolean): Promise<{ path: string; cookie: string } | undefined> {
    const opened = await this.#link(sealed);
    if (!opened) return undefined;
    // Short, and the ciphertext does not reveal its content.
    const link = sealed.slice(-16);
    const cookie = cookieOf(LINK_COOKIE, sealed, opened.until, `/pages/link/${link}`, isSecure);
    return { path: `${pathOf(opened.linked.job)}?link=${link}`, cookie };
  }

  /** The caller of the job to which the browser's link leads; undefined if it leads to another job. */
  async linked(request: Request, job: string): Promise<Caller | undefined> {
    if (!isOwnPage(request)) return undefined;
    const sealed = cookieOfRequest(request, LINK_COOKIE);
    const opened = sealed === undefined ? undefined : await this.#link(sealed);
    return opened?.linked.job === job ? opened.linked.caller : undefined;
  }

  async #link(sealed: string): Promise<{ linked: Linked; until: number } | undefined> {
    const { VIEW_LINKS } = this.config;
    const opened = VIEW_LINKS === "off" ? undefined : await this.seal?.open("link", sealed);
    if (!opened) return undefined;
    const linked = opened.value as Linked;
    return this.blocks(linked.caller) ? undefined : { ...opened, linked };
  }

  blocks(caller: Caller): boolean {
    return isBlocked(caller, this.config.BLOCKED_CALLERS);
  }

  /** The cookie of a session with a token that expires at `expires`; undefined where there are no sessions. */
  async session(token: string, expires: number, isSecure: boolean): Promise<string | undefined> {
    const until = Math.min(Date.now() + SESSION, expires);
    const sealed = await this.seal?.close("session", token, until);
    return sealed && cookieOf(sessionCookie(isSecure), sealed, until, "/", isSecure);
  }

  endOfSession(isSecure: boolean): string {
    return cookieOf(sessionCookie(isSecure), "", 0, "/", isSecure);
  }

  /**
   * The request with the token of its browser's session, which is then verified as any token is. Only for pages of this
   * server: browsers send cookies with requests of other pages, too.
   */
  async withSession(request: Request): Promise<Request> {
    if (!this.seal || request.headers.has("authorization") || !isOwnPage(request)) return request;
    const sealed = cookieOfRequest(request, sessionCookie(request.url.startsWith("https:")));
    const opened = sealed === undefined ? undefined : await this.seal.open("session", sealed);
    if (!opened) return request;
    const headers = new Headers(request.headers);
    headers.set("authorization", `Bearer ${opened.value}`);
    return new Request(request, { headers });
  }
}

/** Whether, by the browser, a page of this server makes the request. */
export const isOwnPage = ({ headers }: Request): boolean => headers.get("sec-fetch-site") === "same-origin";

const pathOf = (name: string) => `/jobs/${encodeURIComponent(name)}`;

const cookieOfRequest = ({ headers }: Request, name: string): string | undefined =>
  parse(headers.get("cookie") ?? "", name)[name];

function cookieOf(name: string, value: string, until: number, path: string, secure: boolean): string {
  const maxAge = Math.max(0, (until - Date.now()) / 1_000);
  return serialize(name, value, { path, maxAge, secure, httpOnly: true, sameSite: "Strict" });
}

/** Those that are texts: what a foreign server says may be anything, and a page would render an object as an element. */
const texts = (values: Record<string, unknown>) =>
  Object.fromEntries(Object.entries(values).filter(([, value]) => typeof value === "string"));
