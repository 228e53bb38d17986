/** The product's edge with a movable clock. */
import edge from "../../functions/index.ts";
import { movable } from "../../testing/time/movable-edge.ts";

export * from "../../functions/index.ts";
export default movable(edge);
