/**
 * The edge that `wrap` serves in front of a server. It is bundled once, with the package. The wrapped server's options and
 * tools come as data in two bindings; changes of the tools come from their file.
 */
import { createEdge, type EdgeWorker } from "../../functions/edge.ts";
import { instructionsIn, type Snapshot, type WrapOptions, wrapServer } from "../../wrap/index.ts";
import { printError } from "../terminal/print.ts";
import { FILES } from "./wrap-files.ts";

export { CallerObject, Listener } from "../../functions/edge.ts";

interface Runtime {
  env: {
    WRAP_OPTIONS: WrapOptions;
    WRAP_SNAPSHOT: Snapshot;
    WRAP_FOLDER: { fetch(url: string): Promise<Response> };
    WRAP_CALLS?: string;
    WRAP_CALLS_TOKEN?: string;
  };
}
const { env }: Runtime = await import("cloudflare:workers" as string);
const { WRAP_OPTIONS: options, WRAP_FOLDER: folder, WRAP_CALLS: url, WRAP_CALLS_TOKEN: token } = env;

/** The shortest time between two checks of the tools. */
const CHECK_INTERVAL_MS = 1_000;

function edgeOf(snapshot: Snapshot): EdgeWorker {
  const { name, title = name, version } = snapshot.server;
  const instructions = instructionsIn(snapshot);
  return createEdge({
    name: options.name,
    title,
    version: version || "0.0.0",
    ...(instructions !== undefined && { instructions }),
    tools: wrapServer(options).tools(snapshot, url && token ? { url, token } : undefined),
  });
}

let edge = edgeOf(env.WRAP_SNAPSHOT);
let snapshotText = JSON.stringify(env.WRAP_SNAPSHOT);
let checkedAt = 0;

/** Reads the file of the tools, and creates a new edge if they have changed. */
async function checkTools(): Promise<void> {
  checkedAt = Date.now();
  const snapshot: Snapshot = await (await folder.fetch(`http://folder/${FILES.snapshot}`)).json();
  const text = JSON.stringify(snapshot);
  if (text === snapshotText) return;
  snapshotText = text;
  edge = edgeOf(snapshot);
}

const current: EdgeWorker = {
  async fetch(...args) {
    if (Date.now() - checkedAt > CHECK_INTERVAL_MS) {
      await checkTools().catch((error: Error) =>
        printError(`The server's tools have changed, and cannot be listed: ${error.message}`),
      );
    }
    return edge.fetch(...args);
  },
};
export default current;
