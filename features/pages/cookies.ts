/** The cookies by which browsers open links to jobs and stay signed in. */
import type { Caller } from "../../core/author/index.ts";
import type { RefusalOf } from "../../functions/auth/admission.ts";
import { cookieOf, cookieOfRequest, isOwnPage, SESSION_MS } from "../../functions/http/cookies.ts";
import { type Linked, type Pages, pathOf, sessionCookie } from "./sessions.ts";

/** A link is exchanged for a cookie with a path of its own, so a browser with many links sends only the one it uses. */
const LINK_COOKIE = "link";

/** Exchanges a link for a path and a cookie; undefined for a void link, and for one of a caller who is not admitted. */
export async function follow(
  pages: Pages,
  sealed: string,
  isSecure: boolean,
  refusalOf: RefusalOf,
): Promise<{ path: string; cookie: string } | undefined> {
  const opened = await openLink(pages, sealed, refusalOf);
  if (!opened) return undefined;
  // A part of the ciphertext, which is short and reveals nothing.
  const link = sealed.slice(-16);
  const cookie = cookieOf(LINK_COOKIE, sealed, opened.until, `/pages/link/${link}`, isSecure);
  return { path: `${pathOf(opened.linked.job)}?link=${link}`, cookie };
}

/** The caller of the job to which the browser's link leads; undefined if it leads to another job. */
export async function linked(
  pages: Pages,
  request: Request,
  job: string,
  refusalOf: RefusalOf,
): Promise<Caller | undefined> {
  if (!isOwnPage(request)) return undefined;
  const sealed = cookieOfRequest(request, LINK_COOKIE);
  const opened = sealed === undefined ? undefined : await openLink(pages, sealed, refusalOf);
  return opened?.linked.job === job ? opened.linked.caller : undefined;
}

async function openLink(
  pages: Pages,
  sealed: string,
  refusalOf: RefusalOf,
): Promise<{ linked: Linked; until: number } | undefined> {
  const opened = pages.config.VIEW_LINKS === "off" ? undefined : await pages.seal?.open("link", sealed);
  if (!opened) return undefined;
  const linked = opened.value as Linked;
  return (await refusalOf(linked.caller.key)) === undefined ? { ...opened, linked } : undefined;
}

/** The cookie of a session with a token that expires at `expires`; undefined where there are no sessions. */
export async function session(
  { seal }: Pages,
  token: string,
  expires: number,
  isSecure: boolean,
): Promise<string | undefined> {
  const until = Math.min(Date.now() + SESSION_MS, expires);
  const sealed = await seal?.close("session", token, until);
  return sealed && cookieOf(sessionCookie(isSecure), sealed, until, "/", isSecure);
}

export const endOfSession = (isSecure: boolean): string => cookieOf(sessionCookie(isSecure), "", 0, "/", isSecure);
