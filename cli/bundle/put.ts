import { randomUUID } from "node:crypto";
import { mkdir, readFile, rename, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";

/** Writes a file atomically, and only if it differs: other processes may watch it. */
export async function put(dir: string, name: string, text: string): Promise<void> {
  const file = join(dir, name);
  if ((await readFile(file, "utf8").catch(() => "")) === text) return;
  const draft = `${file}.${randomUUID()}`;
  await mkdir(dirname(file), { recursive: true });
  await writeFile(draft, text);
  await rename(draft, file);
}
