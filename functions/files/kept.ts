/** The files of jobs, where the edge's bindings have them. */
import { KeptFiles } from "../../core/jobs/files/kept-files.ts";
import { type FileBindings, locationInWorkers } from "../../core/jobs/files/location-in-workers.ts";
import { type Disk, diskStore } from "./disk.ts";

export interface EdgeFileBindings extends FileBindings {
  /** The folder of one machine. */
  FILES_FOLDER?: Disk;
}

/** Whether jobs may store files, which may be of any size. */
export const keepsFiles = ({ FILES_FOLDER, FILES, FILES_URL }: EdgeFileBindings): boolean =>
  Boolean(FILES_FOLDER ?? FILES ?? FILES_URL);

/** Undefined where none are kept. */
export function keptFilesOf(env: EdgeFileBindings): KeptFiles | undefined {
  const { FILES_FOLDER, ENCRYPTION_KEYS: encryptionKeys } = env;
  const location = FILES_FOLDER ? { objects: diskStore(FILES_FOLDER), encryptionKeys } : locationInWorkers(env);
  return location && new KeptFiles(location);
}
