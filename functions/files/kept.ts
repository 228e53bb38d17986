/** The files of jobs, where the edge's bindings have them. */
import { KeptFiles } from "../../core/jobs/files/kept-files.ts";
import { type FileBindings, placeInWorkers } from "../../core/jobs/files/place-in-workers.ts";
import { type Disk, diskStore } from "./disk.ts";

export interface EdgeFileBindings extends FileBindings {
  /** The folder of one machine. */
  FILES_FOLDER?: Disk;
}

/** Whether jobs may store files, which may be of any size. */
export const keepsFiles = ({ FILES_FOLDER, FILES, FILES_URL }: EdgeFileBindings): boolean =>
  Boolean(FILES_FOLDER ?? FILES ?? FILES_URL);

/** Undefined where no place for files is bound. */
export function keptFilesOf(env: EdgeFileBindings): KeptFiles | undefined {
  const { FILES_FOLDER, ENCRYPTION_KEYS: encryptionKeys } = env;
  const place = FILES_FOLDER ? { objects: diskStore(FILES_FOLDER), encryptionKeys } : placeInWorkers(env);
  return place && new KeptFiles(place);
}
