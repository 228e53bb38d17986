/** The edge of `wrap`, which needs no project. A checkout builds it when its sources change; the package contains it. */
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { type Bundle, bundleEdge, EDGE_MODULE, modulesIn } from "../bundle/bundle.ts";
import { pagesFolder } from "../bundle/pages.ts";
import { isCheckout, thisPackage } from "../package.ts";
import { FILES } from "../wrap/wrap-files.ts";
import { copyModules } from "./copy-modules.ts";

/** The folder in the package. */
const FOLDER = "dist/edge";
const ENTRY = "cli/wrap/wrapped-edge.ts";

/**
 * Makes each garbage collection a full one. By default workerd collects fully only when the JavaScript heap has hundreds of
 * megabytes, while its objects hold several megabytes each outside of that heap.
 */
const SMALL_HEAP_FLAGS = ["--gc-global", "--max-semi-space-size=2"];

/** The edge of `wrap`, for the server whose files are in `folder`. */
export async function prebuiltEdge(folder: string): Promise<Bundle> {
  return {
    ...(isCheckout ? await built() : packaged()),
    main: EDGE_MODULE,
    data: { WRAP_OPTIONS: join(folder, FILES.options), WRAP_SNAPSHOT: join(folder, FILES.snapshot) },
    folders: { WRAP_FOLDER: folder },
    v8Flags: SMALL_HEAP_FLAGS,
    compatibilityDate: "2026-11-17",
    compatibilityFlags: [],
    vars: {},
    objects: { LISTENER: "Listener", CALLER: "CallerObject" },
    assets: { binding: "ASSETS", directory: pagesFolder() },
  };
}

const built = () => bundleEdge(ENTRY, thisPackage().root);

function packaged(): Pick<Bundle, "dir" | "modules"> {
  const dir = join(thisPackage().root, FOLDER);
  return { dir, modules: modulesIn(readdirSync(dir)) };
}

/** Builds the edge of this checkout into the folder `out`. */
export const writePrebuiltEdge = async (out: string): Promise<void> => copyModules(await built(), out);
