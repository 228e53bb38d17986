/** Who may look at which page: sessions of browsers, and links to single jobs. */

import type { Tool } from "../../core/author/tool.ts";
import type { Caller } from "../../core/definitions/caller.ts";
import type { Config } from "../app/config.ts";
import type { Identity } from "../mcp/identity.ts";
import type { TaskHandles } from "../tasks/handle.ts";
import { Seal } from "./seal.ts";

/** How long a link to a job is good, and how long a browser stays signed in: in milliseconds. */
const LINK = 7 * 24 * 3_600_000;
const SESSION = 12 * 3_600_000;

const SESSION_COOKIE = "session";
/** What a link is exchanged for. Each has a path of its own: a browser sends the one that is asked with, of however many. */
const LINK_COOKIE = "link";

/** What a link leads to. */
interface Linked {
  job: string;
  caller: Caller;
}

export interface Site {
  tools: readonly Tool[];
  identity: Identity;
  handles: TaskHandles | undefined;
}

export class Pages {
  readonly site: Site;
  readonly #config: Config;
  readonly #seal: Seal | undefined;

  constructor(config: Config, site: Site) {
    this.site = site;
    this.#config = config;
    this.#seal = config.VIEW_KEY === undefined ? undefined : new Seal(config.VIEW_KEY);
  }

  /** The files that browsers load; undefined in a deployment without. */
  get files() {
    return this.#config.ASSETS;
  }

  /** The one other origin that pages speak to: that at which browsers sign in, where they do. */
  get abroad(): string | undefined {
    const { auth } = this.#config;
    return auth.AUTH_MODE === "oauth" && auth.OAUTH_CLIENT_ID ? new URL(auth.OAUTH_ISSUER).origin : undefined;
  }

  /** What everybody may know of the deployment. */
  get about() {
    const { tools, identity } = this.site;
    const { PUBLIC_URL, auth } = this.#config;
    const { AUTH_MODE } = auth;
    return {
      ...identity.info,
      description: identity.description,
      ...(PUBLIC_URL !== undefined && { url: new URL("/mcp", PUBLIC_URL).href }),
      auth: AUTH_MODE,
      ...(AUTH_MODE === "oauth" && { issuer: auth.OAUTH_ISSUER, client_id: auth.OAUTH_CLIENT_ID }),
      sign_in: this.#seal !== undefined && (AUTH_MODE === "bearer" || this.abroad !== undefined),
      tools: tools.map(({ job, listing: { name, title, description, inputSchema, annotations } }) => {
        return { name, title, description, inputSchema, annotations, ...(job && { kind: job.kind }) };
      }),
    };
  }

  /** The address of a job's page, for the caller alone whose it is; undefined where links are switched off. */
  async urlOf(job: string, caller: Caller): Promise<string | undefined> {
    const { PUBLIC_URL, VIEW_LINKS, ASSETS, auth } = this.#config;
    // Never by the host that a request names: whoever sends it chooses that.
    if (PUBLIC_URL === undefined || VIEW_LINKS === "off" || !ASSETS) return undefined;
    if (auth.AUTH_MODE === "none") return new URL(pathOf(job), PUBLIC_URL).href;
    if (!this.#seal) return undefined;
    const linked: Linked = { job, caller };
    return new URL(`/view/${await this.#seal.close("link", linked, Date.now() + LINK)}`, PUBLIC_URL).href;
  }

  /** Exchanges a link for a cookie: where it leads, and the cookie; undefined for one that is void. */
  async follow(sealed: string, isSecure: boolean): Promise<{ path: string; cookie: string } | undefined> {
    const opened = await this.#link(sealed);
    if (!opened) return undefined;
    // Short, and no part of what is in it can be told from that.
    const link = sealed.slice(-16);
    const cookie = cookieOf(LINK_COOKIE, sealed, opened.until, { path: `/pages/link/${link}`, isSecure });
    return { path: `${pathOf(opened.linked.job)}?link=${link}`, cookie };
  }

  /** Whose job a link leads to that the browser was given; undefined for another job's. */
  async linked(request: Request, job: string): Promise<Caller | undefined> {
    if (!isOwnPage(request)) return undefined;
    const sealed = cookieIn(request, LINK_COOKIE);
    const opened = sealed === undefined ? undefined : await this.#link(sealed);
    return opened?.linked.job === job ? opened.linked.caller : undefined;
  }

  async #link(sealed: string): Promise<{ linked: Linked; until: number } | undefined> {
    const { VIEW_LINKS, BLOCKED_CALLERS: blocked = [] } = this.#config;
    const opened = VIEW_LINKS === "off" ? undefined : await this.#seal?.open("link", sealed);
    if (!opened) return undefined;
    const linked = opened.value as Linked;
    return blocked.includes(linked.caller.label) || blocked.includes(linked.caller.id)
      ? undefined
      : { ...opened, linked };
  }

  /** The cookie of a session with this token, which expires then; undefined where there are no sessions. */
  async session(token: string, expires: number, isSecure: boolean): Promise<string | undefined> {
    const until = Math.min(Date.now() + SESSION, expires);
    const sealed = await this.#seal?.close("session", token, until);
    return sealed && cookieOf(SESSION_COOKIE, sealed, until, { path: "/", isSecure });
  }

  endOfSession(isSecure: boolean): string {
    return cookieOf(SESSION_COOKIE, "", 0, { path: "/", isSecure });
  }

  /**
   * The request with the token of its browser's session, which is looked at as any token is. Only for pages of this server:
   * a browser sends cookies along whoever asks it to.
   */
  async withSession(request: Request): Promise<Request> {
    if (!this.#seal || request.headers.has("authorization") || !isOwnPage(request)) return request;
    const sealed = cookieIn(request, SESSION_COOKIE);
    const opened = sealed === undefined ? undefined : await this.#seal.open("session", sealed);
    if (!opened) return request;
    const headers = new Headers(request.headers);
    headers.set("authorization", `Bearer ${opened.value}`);
    return new Request(request, { headers });
  }
}

/** Whether a browser says that a page of this server makes the request. */
export const isOwnPage = ({ headers }: Request): boolean => headers.get("sec-fetch-site") === "same-origin";

const pathOf = (name: string) => `/jobs/${encodeURIComponent(name)}`;

function cookieIn({ headers }: Request, name: string): string | undefined {
  const cookies = (headers.get("cookie") ?? "").split(/; */);
  return cookies.find((cookie) => cookie.startsWith(`${name}=`))?.slice(name.length + 1);
}

function cookieOf(name: string, value: string, until: number, { path, isSecure }: { path: string; isSecure: boolean }) {
  const seconds = Math.max(0, Math.floor((until - Date.now()) / 1_000));
  return `${name}=${value}; Path=${path}; Max-Age=${seconds}; HttpOnly; SameSite=Strict${isSecure ? "; Secure" : ""}`;
}
