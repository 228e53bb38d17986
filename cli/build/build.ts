/** What wrangler runs before it bundles: builds what it takes as it is, pages and modules. */

import { buildModules } from "./modules.ts";
import { buildPages } from "./pages.ts";

await Promise.all([buildPages(process.cwd()), buildModules(process.cwd())]);
