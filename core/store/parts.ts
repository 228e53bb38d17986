/** How a result says that it is kept in chunks: `author/chunks.ts` writes them, and `tools/byte-range.ts` reads them. */

/** The table of contents of a result that is kept in chunks, with a range of it; stored, its beginning. In characters. */
export interface Parts {
  /** Tells its chunks from those of other results of the job. */
  id: string;
  /** The objects in it, as far as they are told apart: in place of every other value its position and length, `begin+length`. */
  shape: unknown;
  /** The length of the whole. */
  characters: number;
  /** How much of it is base64 of images, sounds and files, which an answer may hold beside its text. */
  media?: number;
  /** The lengths of its first fields. */
  fields: Record<string, number>;
  /** The range, and where it begins. */
  text: string;
  offset: number;
}

/** The key under which a result holds its {@link Parts}. */
export const PARTS = "durable-mcp:parts";

/** The table of contents of a result that is kept in chunks; undefined for any other result. */
export const partsIn = (result: unknown): Parts | undefined => {
  const parts = (result as { [PARTS]?: Parts } | null | undefined)?.[PARTS];
  return typeof parts?.text === "string" ? parts : undefined;
};
