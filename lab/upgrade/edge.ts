/** Bundles the edge of the build that this file belongs to. With options in `EDGE_OPTIONS` it serves it, until SIGTERM. */
import { bundleEdge } from "../../cli/bundle/bundle.ts";
import { serveBundle } from "../../cli/launcher/local-edge.ts";

const bundle = await bundleEdge();
if (process.env.EDGE_OPTIONS) {
  const edge = await serveBundle(bundle, JSON.parse(process.env.EDGE_OPTIONS));
  process.once("SIGTERM", () => edge[Symbol.asyncDispose]());
}
