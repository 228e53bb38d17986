/** The build command of wrangler.toml: builds the pages and modules that wrangler does not bundle itself. */
import { buildModules } from "./modules.ts";
import { buildPages } from "./pages.ts";

await Promise.all([buildPages(process.cwd()), buildModules(process.cwd())]);
