/** The credentials of callers at a wrapped server, from the worker's environment. */
import * as z from "zod";
import { callerOf } from "../../../core/author/index.ts";
import { jsonOf } from "../../../core/resonate/index.ts";

/** Stands for all callers without credentials of their own, and for the connection that reads the server's lists. */
export const OTHER_CALLERS = "*";

/** Headers or variables by caller. */
const Credentials = z.record(z.string(), z.record(z.string(), z.string()));

/** The credentials by caller key, or {@link OTHER_CALLERS}, from the text of a variable. @throws {Error} for another text */
export async function readCredentials(
  text: string | undefined,
  variable: string,
): Promise<ReadonlyMap<string, Record<string, string>>> {
  const { data } = Credentials.safeParse(jsonOf(text ?? ""));
  if (!data) throw new Error(`${variable} must be JSON: from callers to objects of names and values`);
  const entries = Object.entries(data).map(
    async ([id, values]) => [id === OTHER_CALLERS ? id : (await callerOf(id)).key, values] as const,
  );
  return new Map(await Promise.all(entries));
}
