import { createEdge } from "../../../functions/edge.ts";
import { tools } from "./tools.ts";

export { CallerObject, Listener } from "../../../functions/edge.ts";
export { ResonateObject, RunnerObject } from "../../../functions/objects.ts";

export default createEdge({
  name: "brewery",
  title: "Brauerei",
  version: "3.1.4",
  instructions: "Brew responsibly.",
  tools,
});
