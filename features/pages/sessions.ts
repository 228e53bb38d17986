/** Access to pages: sessions of browsers, and links to single jobs. */
import type { Caller } from "../../core/author/index.ts";
import type { Identity, JobHandles, Tool } from "../../core/tools/index.ts";
import type { AuthConfig } from "../../functions/auth/auth-config.ts";
import { Seal } from "../../functions/auth/seal.ts";
import type { Assets } from "../../functions/http/assets.ts";
import { cookieOfRequest, isOwnPage } from "../../functions/http/cookies.ts";

/** How long a link to a job is valid, in milliseconds. */
const LINK_VALIDITY_MS = 7 * 24 * 3_600_000;

/**
 * With the prefix, browsers accept the cookie from this host alone, over TLS: no other host of the domain can set it. Without
 * TLS, as on one machine, browsers refuse the prefix.
 */
export const sessionCookie = (isSecure: boolean) => (isSecure ? "__Host-session" : "session");

/** The job to which a link leads, and whose it is. */
export interface Linked {
  job: string;
  caller: Caller;
}

interface Site {
  tools: readonly Tool[];
  identity: Identity;
  handles: JobHandles | undefined;
}

interface PagesConfig {
  PUBLIC_URL?: string | undefined;
  /** Seals links and sessions; without it there are none. */
  VIEW_KEY?: string | undefined;
  VIEW_LINKS: "on" | "off";
  /** The files that browsers load; undefined in a deployment without pages. */
  ASSETS?: Assets | undefined;
  auth: AuthConfig;
  /** `local` where anybody at this machine operates the deployment. */
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

  /** Whether jobs' pages have addresses that may be given away. */
  get hasLinks(): boolean {
    const { PUBLIC_URL, VIEW_LINKS, ASSETS, auth } = this.config;
    return PUBLIC_URL !== undefined && VIEW_LINKS === "on" && !!ASSETS && (auth.AUTH_MODE === "none" || !!this.seal);
  }

  /** The address of a job's page for its caller alone; undefined if links are off. */
  async urlOf(job: string, caller: Caller): Promise<string | undefined> {
    const { PUBLIC_URL, VIEW_LINKS, ASSETS, auth } = this.config;
    // Never from the host in a request, which its sender chooses.
    if (PUBLIC_URL === undefined || VIEW_LINKS === "off" || !ASSETS) return undefined;
    if (auth.AUTH_MODE === "none") return new URL(pathOf(job), PUBLIC_URL).href;
    if (!this.seal) return undefined;
    const linked: Linked = { job, caller };
    return new URL(`/view/${await this.seal.close("link", linked, Date.now() + LINK_VALIDITY_MS)}`, PUBLIC_URL).href;
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

export const pathOf = (name: string) => `/jobs/${encodeURIComponent(name)}`;
