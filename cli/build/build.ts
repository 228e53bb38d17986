/** The build command of wrangler.toml, which builds the pages and modules that wrangler itself does not bundle. */
import { buildModules } from "./modules.ts";
import { buildPages } from "./pages.ts";

await Promise.all([buildPages(), buildModules(process.cwd())]);
