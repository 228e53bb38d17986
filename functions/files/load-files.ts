import type { FilePages, Files } from "./files.ts";

type Loaded = typeof import("./files.ts");

/** Set by `define` in wrangler.toml where the Worker has this code as a module. Elsewhere the bundle contains it. */
declare const FILES_MODULE: string | undefined;

/** Not a literal: the bundler would look for a file beside this one. */
const load = (module: string): Promise<Loaded> => import(module);

/** What serves files, loaded where a job has one. */
export type LoadFiles = () => Promise<Files>;

export function filesOf(env: object, pages: FilePages): LoadFiles {
  let files: Files | undefined;
  return async () => {
    const loaded = typeof FILES_MODULE === "undefined" ? import("./files.ts") : load(FILES_MODULE);
    files ??= new (await loaded).Files(env, pages);
    return files;
  };
}

/** Whether a JSON text may name a file. */
export const mayHaveFiles = (json: string): boolean => json.includes("/files/");
