import { loadLazy } from "../load-lazy.ts";
import type { FilePages, Files } from "./files.ts";

/** What serves files, loaded where a job has one. */
export type LoadFiles = () => Promise<Files>;

export function filesOf(env: object, pages: FilePages): LoadFiles {
  let files: Files | undefined;
  return async () => {
    const { Files } = await loadLazy();
    files ??= new Files(env, pages);
    return files;
  };
}

/** Whether a JSON text may name a file. */
export const mayHaveFiles = (json: string): boolean => json.includes("/files/");
