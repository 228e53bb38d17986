/** An edge in front of a server with held-back changes and odd values in its tools. */
import { createEdge } from "../../../functions/edge.ts";
import { type Snapshot, wrapServer } from "../../../wrap/index.ts";

export { CallerObject, Listener } from "../../../functions/edge.ts";
export { ResonateObject, RunnerObject } from "../../../functions/objects.ts";

/** An object that the pages' library would render as an element, and an object that cannot become text. */
const ELEMENT_LIKE = { tag: "b", type: "b", key: null, ref: null, props: { class: "injected" } };
const WITHOUT_TEXT = { toString: 1, valueOf: 1 };
const properties = {
  odd: {
    type: ELEMENT_LIKE,
    title: ELEMENT_LIKE,
    description: ELEMENT_LIKE,
    default: WITHOUT_TEXT,
    minimum: ELEMENT_LIKE,
  },
  mute: { type: "string", enum: [WITHOUT_TEXT], default: WITHOUT_TEXT },
  none: null,
  ranged: { type: "integer", minimum: WITHOUT_TEXT, maximum: WITHOUT_TEXT },
  formed: { type: "string", format: WITHOUT_TEXT, maxLength: WITHOUT_TEXT },
  constructor: { type: "string" },
};

const snapshot: Snapshot = {
  server: { name: "acme", version: "1" },
  revision: "2026-07-28",
  resources: false,
  tools: [
    { name: "read", inputSchema: { type: "object" } },
    {
      name: "odd",
      ...({ title: ELEMENT_LIKE, description: ELEMENT_LIKE } as object),
      inputSchema: { type: "object", properties, required: ELEMENT_LIKE },
    },
    { name: "flat", inputSchema: { type: "object", properties: "none", required: 5 } },
  ],
  lists: { prompts: [], resources: [], resourceTemplates: [] },
  offers: [],
  unapprovedChanges: ["+ <b>leak</b> is new"],
};

export default createEdge({
  name: "held",
  version: "0.0.0",
  tools: wrapServer({ name: "acme", url: "http://127.0.0.1:1/mcp" }).tools(snapshot),
});
