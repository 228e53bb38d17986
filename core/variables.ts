/** Kinds of environment variables, for the parts of a process's configuration that features declare. */
import * as z from "zod";

/** The address of a server, which may end in a slash. */
export const serverUrl = z.url({ protocol: /^https?$/ }).transform((text) => text.replace(/\/+$/, ""));
