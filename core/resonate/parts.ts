/** How a result says that it is stored in chunks: `author/chunks.ts` writes them, and `tools/byte-range.ts` reads them. */

/** The table of contents of a result that is stored in chunks, with a range of its text. Lengths are in characters. */
export interface Parts {
  /** Distinguishes its chunks from those of other results of the job. */
  id: string;
  /** The structure of its outer objects, with the position and length of every other value in its place, as `begin+length`. */
  shape: unknown;
  /** The length of the whole. */
  characters: number;
  /** How much of it is base64 of images, sounds and files, which an answer may hold besides its text. */
  media?: number;
  /** The lengths of its first fields. */
  fields: Record<string, number>;
  /** The range, and where it begins. In a stored result it is the beginning. */
  text: string;
  offset: number;
}

/** The key under which a result holds its {@link Parts}. */
export const PARTS = "durable-mcp:parts";

/** The table of contents of a result that is stored in chunks; undefined for any other result. */
export const partsIn = (result: unknown): Parts | undefined => {
  const parts = (result as { [PARTS]?: Parts } | null | undefined)?.[PARTS];
  // A function may return another value under this key.
  const { id, text, characters } = parts ?? {};
  const isOurs = typeof id === "string" && typeof text === "string" && Number.isSafeInteger(characters);
  return isOurs && Number(characters) >= text.length ? parts : undefined;
};
