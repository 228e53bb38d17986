import { createHash, timingSafeEqual } from "node:crypto";

/** The names of this machine. A page whose name resolves to this machine sends its own name. */
const NAMES = new Set(["127.0.0.1", "localhost", "[::1]"]);

/** Whether a `Host` header names this machine, on any port. */
export function isLocalHost(host: string | undefined): boolean {
  const url = URL.parse(`http://${host ?? ""}`);
  return url !== null && url.pathname === "/" && NAMES.has(url.hostname);
}

/** Compares tokens in a time that does not tell where they differ. */
export function isToken(known: string, given: string | undefined): boolean {
  const [a, b] = [known, given ?? ""].map((text) => createHash("sha256").update(text).digest()) as [Buffer, Buffer];
  return timingSafeEqual(a, b);
}
