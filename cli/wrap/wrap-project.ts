/** Writes the project that `wrap` runs in front of an existing server. */
import { mkdir, writeFile } from "node:fs/promises";
import { extname, join } from "node:path";
import { pathToFileURL } from "node:url";
import type { Snapshot, WrapOptions } from "../../wrap/index.ts";
import { writeSnapshot } from "../../wrap/worker/snapshot-file.ts";
import { pagesFolder } from "../build/pages.ts";
import { thisPackage } from "../package.ts";

/** The quoted path of a module of this package, for imports from another folder. */
const module = (name: string) => {
  const root = join(import.meta.dirname, "../..");
  return JSON.stringify(join(root, name + extname(import.meta.filename)));
};

const EDGE = () => `import { createEdge } from ${module("functions/edge")};
import { instructionsIn } from ${module("wrap/index")};
import { server } from "./server.ts";
import snapshot from "./snapshot.ts";

export { CallerObject, Listener } from ${module("functions/edge")};

const { name, title = name, version } = snapshot.server;
const instructions = instructionsIn(snapshot);

export default createEdge({
  name: server.options.name,
  title,
  version: version || "0.0.0",
  ...(instructions !== undefined && { instructions }),
  tools: server.tools(snapshot),
});
`;

const WORKER = () => `import { runWorker } from ${module("worker/index")};
import { runs } from "./runs.ts";

await runWorker({ tools: runs });
`;

const RUNS = () => `import { runWrapped } from ${module("wrap/worker/index")};
import { server } from "./server.ts";

export const runs = runWrapped(server, { snapshot: new URL("./snapshot.ts", import.meta.url) });
`;

const SERVER = (options: WrapOptions) => `import { wrapServer } from ${module("wrap/index")};

export const server = wrapServer(${JSON.stringify(options, undefined, 2)});
`;

const WRANGLER = (name: string) => `name = "${name}"
main = "edge.ts"
compatibility_date = "2026-11-17"
minify = true

[assets]
directory = ${JSON.stringify(pagesFolder())}
binding = "ASSETS"
run_worker_first = true
html_handling = "none"

[[durable_objects.bindings]]
name = "LISTENER"
class_name = "Listener"

[[durable_objects.bindings]]
name = "CALLER"
class_name = "CallerObject"

[[migrations]]
tag = "listener"
new_sqlite_classes = ["Listener", "CallerObject"]
`;

export async function writeProject(root: string, options: WrapOptions, snapshot: Snapshot): Promise<void> {
  await mkdir(root, { recursive: true });
  const { version } = thisPackage().manifest;
  const about = {
    name: options.name,
    version,
    private: true,
    type: "module",
    "durable-mcp-edge": { wrapped: "runs.ts" },
  };
  const files = {
    "package.json": `${JSON.stringify(about, undefined, 2)}\n`,
    "wrangler.toml": WRANGLER(options.name),
    "edge.ts": EDGE(),
    "worker.ts": WORKER(),
    "runs.ts": RUNS(),
    "server.ts": SERVER(options),
  };
  await Promise.all([
    ...Object.entries(files).map(([name, text]) => writeFile(join(root, name), text)),
    writeSnapshot(pathToFileURL(join(root, "snapshot.ts")), snapshot),
  ]);
}
