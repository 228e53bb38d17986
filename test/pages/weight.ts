/** The files that a page loads, and their size. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { buildPages, pagesFolder } from "../../cli/bundle/pages.ts";

export const PAGES = ["index.html", "jobs.html", "job.html"];

/** The files that a page of this checkout loads, including those that it may load later, such as for a chart. */
export async function filesOf(page: string): Promise<Map<string, Buffer>> {
  await buildPages();
  const files = new Map<string, Buffer>();
  const load = async (name: string): Promise<void> => {
    if (files.has(name)) return;
    const content = await readFile(join(pagesFolder(), name));
    files.set(name, content);
    const references = content.toString().matchAll(/(?:\/assets\/|["']\.\/)([\w-]+\.(?:js|css|svg))/g);
    for (const [, next = ""] of references) await load(next);
  };
  await load(page);
  return files;
}

/** The total size of a page's files, each compressed, in bytes. */
export async function weightOf(page: string): Promise<number> {
  return [...(await filesOf(page)).values()].reduce((bytes, content) => bytes + gzipSync(content).length, 0);
}
