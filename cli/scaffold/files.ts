import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";

/** The contents of files by their relative paths, which are written with `/`. */
export type ScaffoldFiles = Map<string, string>;

const TEMPLATE = join(import.meta.dirname, "../template");
/** Files that npm cannot pack under their own name. */
const PACKED_NAMES: Readonly<Record<string, string>> = {
  dockerignore: ".dockerignore",
  gitignore: ".gitignore",
  npmrc: ".npmrc",
};

export async function template(name: "project" | "tool"): Promise<ScaffoldFiles> {
  const folder = join(TEMPLATE, name);
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  return new Map(
    await Promise.all(
      files.map(async (file): Promise<[string, string]> => {
        const path = file.slice(folder.length + 1).replaceAll("\\", "/");
        return [PACKED_NAMES[path] ?? path, await readFile(file, "utf8")];
      }),
    ),
  );
}

/** Applies `replace` to the path and the text of each file. */
export function mapFiles(files: ScaffoldFiles, replace: (text: string) => string): ScaffoldFiles {
  return new Map([...files].map(([path, text]) => [replace(path), replace(text)]));
}

export async function writeFiles(root: string, files: ScaffoldFiles): Promise<void> {
  for (const [path, text] of files) {
    await mkdir(dirname(join(root, path)), { recursive: true });
    await writeFile(join(root, path), text);
  }
}
