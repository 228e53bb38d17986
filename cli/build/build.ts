/** The build command of wrangler.toml: builds the pages, and the edge into a folder whose modules wrangler uploads as they are. */
import { bundleEdge } from "../bundle/bundle.ts";
import { copyModules } from "./copy-modules.ts";

/** The folder in the project. wrangler.toml refers to it. */
const OUT = ".build/edge";

await copyModules(await bundleEdge(), OUT);
