/** The code that an isolate loads only when it is needed: callers' objects, and code that few requests use. */

export { cardOf } from "../features/cards/card-of.ts";
export { documents } from "../features/discovery/discovery.ts";
export { Files } from "../features/files/files.ts";
export { positionIn } from "../features/order/order.ts";
export { answerPage } from "../features/pages/routes.ts";
export { subscribe } from "../features/tasks/subscribe.ts";
export { exportSpan } from "../features/trace/export-span.ts";
export { CallerObject } from "./objects/caller-object.ts";
export { doorOf } from "./public-routes.ts";
