/** Where a worker process keeps files, by its environment variables. */
import { createHash } from "node:crypto";
import { resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { folderStore, readPath } from "./folder.ts";
import type { FileLocation } from "./kept-files.ts";
import { s3Of } from "./storage/s3.ts";

type Variables = Readonly<Record<string, string | undefined>>;

/**
 * The location that `FILES_URL` names; undefined if it is not set. `onBytes` is called with the number of bytes of each chunk that
 * passed.
 *
 * @throws {Error} naming the variables that are missing
 */
export function locationOf(env: Variables, onBytes: (bytes: number) => void = () => {}): FileLocation | undefined {
  const { FILES_URL: url, ENCRYPTION_KEYS: encryptionKeys } = env;
  if (!url) return undefined;
  return {
    objects: /^https?:/.test(url) ? s3Of(env) : folderStore(pathOf(url)),
    encryptionKeys,
    hash: () => {
      const hash = createHash("sha256");
      const update = (bytes: Uint8Array) => {
        hash.update(bytes);
        onBytes(bytes.length);
      };
      return { update, digest: () => hash.digest("hex") };
    },
    readPath,
  };
}

const pathOf = (url: string): string => (url.startsWith("file:") ? fileURLToPath(url) : resolve(url));
