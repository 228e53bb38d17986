/** Values that a function is given from outside, parsed by the schemas of its author. */
import type * as z from "zod";
import { $ZodAsyncError } from "zod/v4/core"; // Not as `z.core`, which would load all of zod, with its languages.

/** Refuses an asynchronous schema with `refusal`: each replay would run its checks again, which could then decide otherwise. */
export function parsedAtOnce<T>(schema: z.ZodType<T>, value: unknown, refusal: () => Error): z.ZodSafeParseResult<T> {
  try {
    return schema.safeParse(value);
  } catch (error) {
    throw error instanceof $ZodAsyncError ? refusal() : error;
  }
}

/** The problems of a value that does not fit its schema, in one line. */
export const problemsOf = ({ issues }: Pick<z.ZodError, "issues">): string =>
  issues.map(({ path, message }) => (path.length > 0 ? `${path.join(".")}: ${message}` : message)).join("; ");
