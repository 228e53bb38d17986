/** Where Cloudflare Workers keep files, by their bindings. */

import type { FileLocation } from "./kept-files.ts";
import { type Bucket, bucketStore } from "./storage/r2.ts";
import { s3Of } from "./storage/s3.ts";

export interface FileBindings {
  /** A bucket of the account. */
  FILES?: Bucket;
  FILES_URL?: string;
  FILES_KEY_ID?: string;
  FILES_SECRET?: string;
  FILES_REGION?: string;
  ENCRYPTION_KEYS?: string;
}

export function locationInWorkers(env: FileBindings): FileLocation | undefined {
  const { FILES, FILES_URL, ENCRYPTION_KEYS: encryptionKeys } = env;
  if (FILES) return { objects: bucketStore(FILES), encryptionKeys };
  return FILES_URL?.startsWith("http") ? { objects: s3Of(env), encryptionKeys } : undefined;
}
