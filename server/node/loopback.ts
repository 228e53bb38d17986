/** Who may speak to a server that listens on loopback. */
import { createHash, timingSafeEqual } from "node:crypto";

/** The names of this machine. A page that has its own name resolved to it sends that name. */
const NAMES = new Set(["127.0.0.1", "localhost", "[::1]"]);

/** Whether a `Host` header names this machine, on whatever port. */
export function isLocalHost(host: string | undefined): boolean {
  const url = URL.parse(`http://${host ?? ""}`);
  return url !== null && url.pathname === "/" && NAMES.has(url.hostname);
}

/** Whether a token is the one that is known, in a time that does not tell where they differ. */
export function isToken(known: string, given: string | undefined): boolean {
  const [a, b] = [known, given ?? ""].map((text) => createHash("sha256").update(text).digest()) as [Buffer, Buffer];
  return timingSafeEqual(a, b);
}
