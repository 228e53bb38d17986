/** Kinds of variables and bindings of a Worker, for the parts of the configuration that features declare. */
import * as z from "zod";

/** A list, separated by commas. */
export const list = z.string().transform((text) =>
  text
    .split(",")
    .map((item) => item.trim())
    .filter((item) => item !== ""),
);

/** A limit; 0 for none. */
export const limit = z.coerce.number().int().min(0);

/** What the platform binds to a name. */
export const binding = <T>() => z.custom<T>((value) => typeof value === "object").optional();
