/** The files that `wrap` serves a server from: the description of the server, and its tools. */
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { Snapshot, WrapOptions } from "../../wrap/index.ts";
import { type Update, writeUpdate } from "../../wrap/worker/snapshot-file.ts";
import { FILES } from "./wrap-files.ts";

/** Writes them, and a `package.json` by which `sync` and the doctor find them, into the folder `root`. */
export async function writeProject(
  root: string,
  options: WrapOptions,
  now: Snapshot,
  update: Update = { snapshot: now, taken: [], held: [] },
): Promise<void> {
  await mkdir(root, { recursive: true });
  const manifest = { name: options.name, private: true, "durable-mcp-edge": { wrapped: FILES.options } };
  await writeFile(join(root, "package.json"), json(manifest));
  await writeFile(join(root, FILES.options), json(options));
  await writeUpdate(pathToFileURL(join(root, FILES.snapshot)), update, now);
}

const json = (value: unknown) => `${JSON.stringify(value, undefined, 2)}\n`;
