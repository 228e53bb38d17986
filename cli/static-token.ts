import { createHash, randomBytes } from "node:crypto";

/** Valid names for the owner of a static token. */
export const TOKEN_NAME = /^[\w.@][\w.@-]{0,63}$/;

/** A random static token, and the hash by which the edge recognizes it. */
export function newToken(): { token: string; sha256: string } {
  const token = `dme_${randomBytes(32).toString("base64url")}`;
  return { token, sha256: createHash("sha256").update(token).digest("hex") };
}
