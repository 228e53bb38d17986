/**
 * The edge that `wrap` serves in front of a server. It is bundled once, with the package; the wrapped server's options and
 * tools come as data, in two bindings.
 */
import { createEdge } from "../../functions/edge.ts";
import { instructionsIn, type Snapshot, type WrapOptions, wrapServer } from "../../wrap/index.ts";

export { CallerObject, Listener } from "../../functions/edge.ts";

interface Runtime {
  env: { WRAP_OPTIONS: WrapOptions; WRAP_SNAPSHOT: Snapshot; WRAP_CALLS?: string; WRAP_CALLS_TOKEN?: string };
}
const { env }: Runtime = await import("cloudflare:workers" as string);
const { WRAP_OPTIONS: options, WRAP_SNAPSHOT: snapshot, WRAP_CALLS: url, WRAP_CALLS_TOKEN: token } = env;
const { name, title = name, version } = snapshot.server;
const instructions = instructionsIn(snapshot);

export default createEdge({
  name: options.name,
  title,
  version: version || "0.0.0",
  ...(instructions !== undefined && { instructions }),
  tools: wrapServer(options).tools(snapshot, url && token ? { url, token } : undefined),
});
