/** Cookies of this server's pages. */
import { parse, serialize } from "hono/utils/cookie";

/** How long a browser stays signed in, in milliseconds. */
export const SESSION_MS = 12 * 3_600_000;

/** A cookie that is valid `until` a time in milliseconds since the epoch. */
export function cookieOf(name: string, value: string, until: number, path: string, secure: boolean): string {
  const maxAge = Math.max(0, (until - Date.now()) / 1_000);
  return serialize(name, value, { path, maxAge, secure, httpOnly: true, sameSite: "Strict" });
}

export const cookieOfRequest = ({ headers }: Request, name: string): string | undefined =>
  parse(headers.get("cookie") ?? "", name)[name];

/** Whether the browser states that a page of this server makes the request. */
export const isOwnPage = ({ headers }: Request): boolean => headers.get("sec-fetch-site") === "same-origin";
