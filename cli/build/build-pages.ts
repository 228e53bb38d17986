/** A program that builds the pages into a folder: `node cli/build/build-pages.ts dist/pages`. */
import { resolve } from "node:path";
import { thisPackage } from "../package.ts";
import { writePages } from "./pages.ts";

const [out] = process.argv.slice(2);
if (out === undefined) throw new Error("Name the folder to build the pages into.");
await writePages(thisPackage().root, resolve(out));
