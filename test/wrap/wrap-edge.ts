/** The edge of a wrapped server's project. The server's options and tools are bindings, so one bundle serves all tests. */
import { createEdge } from "../../functions/edge.ts";
import { instructionsIn, type Snapshot, type WrapOptions, wrapServer } from "../../wrap/index.ts";

export { CallerObject, Listener } from "../../functions/edge.ts";
export { ResonateObject, RunnerObject } from "../../functions/objects.ts";

const { env } = await import("cloudflare:workers" as string);
const options: WrapOptions = JSON.parse(env.WRAP_OPTIONS);
const snapshot: Snapshot = JSON.parse(env.WRAP_SNAPSHOT);
const { title = snapshot.server.name, version } = snapshot.server;
const instructions = instructionsIn(snapshot);

export default createEdge({
  name: options.name,
  title,
  version,
  ...(instructions !== undefined && { instructions }),
  tools: wrapServer(options).tools(snapshot, env.WRAP_CALLS && { url: env.WRAP_CALLS, token: env.WRAP_CALLS_TOKEN }),
});
