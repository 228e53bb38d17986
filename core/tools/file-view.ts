/** How the files of a job are shown to clients and pages. */
import type { FileReference } from "../author/file.ts";

/** A file, with its path for one caller. */
export interface FileView extends Pick<FileReference, "name" | "mimeType" | "size" | "uri"> {
  path: string;
}

/** The field of a card's data that holds the files of its job. */
export const CARD_FILES = "job_files";
