/** The edge of `wrap`, which needs no project. A checkout builds it when its sources change; the package contains it. */
import { join } from "node:path";
import type { Bundle } from "../bundle/bundle.ts";
import { isCheckout, thisPackage } from "../package.ts";
import { FILES } from "../wrap/wrap-files.ts";
import { loadEsbuild } from "./esbuild.ts";
import { buildIfChanged, bundleModules, ENTRIES as MODULES, put } from "./modules.ts";
import { buildPages, pagesFolder } from "./pages.ts";

/** The folder in the package. */
const FOLDER = "dist/edge";
const MAIN = "index.js";
/** The entry code of the edge and of its lazily loaded modules, by file name. */
const ENTRIES = {
  [MAIN]: 'export * from "./cli/wrap/wrapped-edge.ts"; export { default } from "./cli/wrap/wrapped-edge.ts";',
  "modules/caller.js": MODULES["caller.js"],
  "modules/cron.js": MODULES["cron.js"],
  "modules/sdk.js": MODULES["sdk.js"],
};
const DEFINE = {
  CALLER_MODULE: '"./modules/caller.js"',
  CRON_MODULE: '"./modules/cron.js"',
  SDK_MODULE: '"./modules/sdk.js"',
};

/**
 * Makes each garbage collection a full one. By default workerd collects fully only when the JavaScript heap has hundreds of
 * megabytes, while its objects hold several megabytes each outside of that heap.
 */
const SMALL = ["--gc-global", "--max-semi-space-size=2"];

/** The file in `.build` with the sources of the last build and their hash. */
const STAMP = "edge.json";

/** The edge of `wrap`, for the server whose files are in `folder`. */
export async function prebuiltEdge(folder: string): Promise<Bundle> {
  const { root } = thisPackage();
  const dir = join(root, isCheckout ? ".build/edge" : FOLDER);
  if (isCheckout) {
    const output = { folder: dir, names: Object.keys(ENTRIES) };
    const building = buildIfChanged(root, STAMP, output, () => writePrebuiltEdge(root, dir));
    const [, { isNew }] = await Promise.all([buildPages(), building]);
    // Nothing else is bundled, so esbuild's process may end.
    if (isNew) await (await loadEsbuild(root)).stop();
  }
  return {
    dir,
    main: MAIN,
    modules: Object.keys(ENTRIES).filter((name) => name !== MAIN),
    data: { WRAP_OPTIONS: join(folder, FILES.options), WRAP_SNAPSHOT: join(folder, FILES.snapshot) },
    folders: { WRAP_FOLDER: folder },
    v8Flags: SMALL,
    compatibilityDate: "2026-11-17",
    compatibilityFlags: [],
    vars: {},
    objects: { LISTENER: "Listener", CALLER: "CallerObject" },
    assets: { binding: "ASSETS", directory: pagesFolder() },
  };
}

/** Builds the edge of the checkout at `root` into the folder `out`. Returns the sources, absolute, and the files. */
export async function writePrebuiltEdge(root: string, out: string) {
  const sources = new Set<string>();
  for (const [name, contents] of Object.entries(ENTRIES)) {
    const options = name === "modules/caller.js" ? { cronAt: "./cron.js" } : name === MAIN ? { define: DEFINE } : {};
    const { files, sources: inputs } = await bundleModules(root, { [name]: contents }, options);
    for (const input of inputs) sources.add(input);
    for (const [file, text] of files) await put(out, file, text);
  }
  return { sources: [...sources].sort(), files: Object.keys(ENTRIES) };
}
