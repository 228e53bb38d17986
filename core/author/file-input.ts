/** A file as a tool's input. */
import * as z from "zod";
import { type FileLimits, type InputFile, MAX_INPUT, partsOfUri, sizeInWords } from "./file.ts";

/** The longest `data:` URI, in characters: it is kept with the job's arguments. */
const MAX_DATA = 100_000;

/** The longest address, in characters. */
const MAX_ADDRESS = 4_000;

/**
 * A file that a client gives: its `https` URL, a `data:` URI of up to 100,000 characters, or another job's file, by its
 * `job://` address or its reference. A step reads it with `step.read`, within these limits; until then nothing is fetched.
 *
 * @example
 * const input = z.object({ photo: fileInput({ mimeTypes: ["image/*"], max: 10_000_000 }) });
 */
export function fileInput({ mimeTypes, max = MAX_INPUT }: FileLimits = {}): z.ZodType<InputFile> {
  const accepted = [...(mimeTypes ? [mimeTypes.join(" or ")] : []), `up to ${sizeInWords(max)}`].join(", ");
  const description = `A file (${accepted}): its https URL, the job:// address of another job's file, or a data: URI of up to ${MAX_DATA} characters.`;
  const toFileInput = (value: unknown): unknown => {
    const { from, uri } = Object(value);
    const address = typeof value === "string" ? value.trim() : (from ?? uri);
    return typeof address === "string" ? { from: address, ...(mimeTypes && { mimeTypes }), max } : value;
  };
  const isFile = (value: unknown) => {
    const { from } = Object(value);
    if (typeof from !== "string") return false;
    if (/^data:/i.test(from)) return from.length <= MAX_DATA;
    return from.length <= MAX_ADDRESS && (partsOfUri(from) !== undefined || isHttps(from));
  };
  const message = `it is not accepted, or too long. ${description}`;
  return z.preprocess(toFileInput, z.unknown().refine(isFile, message).meta({ type: "string", description })) as never;
}

function isHttps(address: string): boolean {
  const { protocol, username, password } = URL.canParse(address) ? new URL(address) : {};
  return protocol === "https:" && !username && !password;
}
