import type { ObjectPart } from "../../core/jobs/object-part.ts";
import { type EdgeFileBindings, keepsFiles, keptFilesOf } from "./kept.ts";

/** Removes the files of a job that is removed; undefined in a deployment that keeps no files. */
export const filesOfForgotten = (env: EdgeFileBindings): ObjectPart | undefined =>
  keepsFiles(env)
    ? {
        name: "files",
        // The sweep removes files that this leaves behind.
        onForget: async (id) => {
          await keptFilesOf(env)
            ?.removeAll(id)
            .catch(() => {});
        },
      }
    : undefined;
