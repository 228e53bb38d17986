/** `resonate`: runs the embedded Resonate server. */
import { pathToFileURL } from "node:url";
import { programPath } from "../package.ts";

export async function run(args: string[]): Promise<void> {
  const file = programPath("server/node/process");
  process.argv.splice(1, Infinity, file, ...args); // The program reads its own arguments.
  await import(pathToFileURL(file).href);
}
