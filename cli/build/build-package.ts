/** Builds the package's code for browsers and for workerd into its folder: `node cli/build/build-package.ts dist`. */
import { join, resolve } from "node:path";
import { writePages } from "../bundle/pages.ts";
import { thisPackage } from "../package.ts";
import { writePrebuiltEdge } from "./prebuilt-edge.ts";

const [out] = process.argv.slice(2);
if (out === undefined) throw new Error("Name the package's folder.");
const { root } = thisPackage();
await Promise.all([writePages(root, join(resolve(out), "pages")), writePrebuiltEdge(join(resolve(out), "edge"))]);
