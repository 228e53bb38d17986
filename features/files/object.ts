import type { ObjectPart } from "../../core/jobs/index.ts";
import { type EdgeFileBindings, fileStorageOf, keepsFiles } from "./kept.ts";

/** Removes the files of a job that is removed; undefined in a deployment that keeps no files. */
export const filesOfForgotten = (env: EdgeFileBindings): ObjectPart | undefined =>
  keepsFiles(env)
    ? {
        name: "files",
        // The sweep removes files that this leaves behind.
        onForget: async (id) => {
          await fileStorageOf(env)
            ?.removeAll(id)
            .catch(() => {});
        },
      }
    : undefined;
