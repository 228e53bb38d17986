/** Where a worker process keeps files, by its environment variables. */
import { createHash } from "node:crypto";
import { resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { collectGarbage } from "../../worker/process/collect-garbage.ts";
import { folderStore, readPath } from "./folder.ts";
import type { FileLocation } from "./kept-files.ts";
import { s3Of } from "./storage/s3.ts";

type Variables = Readonly<Record<string, string | undefined>>;

/** The location that `FILES_URL` names; undefined if it is not set. @throws {Error} naming the variables that are missing */
export function locationOf(env: Variables): FileLocation | undefined {
  const { FILES_URL: url, ENCRYPTION_KEYS: encryptionKeys } = env;
  if (!url) return undefined;
  return {
    objects: /^https?:/.test(url) ? s3Of(env) : folderStore(pathOf(url)),
    encryptionKeys,
    hash: () => {
      const hash = createHash("sha256");
      const update = (bytes: Uint8Array) => {
        hash.update(bytes);
        passed(bytes.length);
      };
      return { update, digest: () => hash.digest("hex") };
    },
    readPath,
  };
}

/** How many bytes of files may pass before their buffers are collected. V8 itself collects only after 64 MB of unused buffers. */
const WAITING = 8 * 1024 * 1024;

let waiting = 0;

/** Counts bytes that passed through steps, and collects their buffers now and then. */
function passed(bytes: number): void {
  waiting += bytes;
  if (waiting < WAITING) return;
  waiting = 0;
  collectGarbage("minor");
}

const pathOf = (url: string): string => (url.startsWith("file:") ? fileURLToPath(url) : resolve(url));
