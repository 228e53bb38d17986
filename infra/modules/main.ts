/** What wrangler runs before it bundles: builds what it takes as it is, pages and modules. */
import { buildPages } from "../pages/build.ts";
import { buildModules } from "./build.ts";

await Promise.all([buildPages(process.cwd()), buildModules(process.cwd())]);
