/** Which host names a request may be addressed to, and which pages it may come from. */
import type { Middleware } from "../../core/tools/index.ts";

/**
 * Refuses requests to host names other than these: a web page can make its own name resolve to this machine (DNS rebinding).
 */
export const checkHost = (hosts: readonly string[]): Middleware =>
  async function checkHostOf(c, next) {
    const host = c.req.header("host");
    if (host !== undefined && hosts.includes(URL.parse(`http://${host}`)?.hostname ?? "")) return next();
    const { hostHeaderValidationResponse } = await import("../sdk.ts");
    return hostHeaderValidationResponse(c.req.raw, [...hosts]) ?? next();
  };

/**
 * Refuses requests of pages, except those of the request's own host, of the deployment's names and of listed origins.
 *
 * @param hosts the deployment's names
 */
export const checkOrigin = (origins: readonly string[], hosts: readonly string[] = []): Middleware =>
  async function checkOriginOf(c, next) {
    const origin = c.req.header("origin");
    if (!origin || origins.includes("*") || origins.includes(origin)) return next();
    if (URL.parse(origin)?.host === new URL(c.req.url).host && /^https?:/.test(origin)) return next();
    const { originValidationResponse } = await import("../sdk.ts");
    return originValidationResponse(c.req.raw, [...hosts]) ?? next();
  };
