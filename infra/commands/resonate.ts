/** `resonate`: the embedded Resonate server. */
import { pathToFileURL } from "node:url";
import { programPath } from "../launcher/package.ts";

export async function run(args: string[]): Promise<void> {
  const file = programPath("resonate/node/main");
  process.argv.splice(1, Infinity, file, ...args); // The program reads its own arguments.
  await import(pathToFileURL(file).href);
}
