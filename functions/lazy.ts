/** The code that an isolate loads only when it is needed: callers' objects, and code that few requests use. */

export { cardOf } from "../features/cards/card-of.ts";
export { positionIn } from "../features/order/order.ts";
export { subscribe } from "../features/tasks/subscribe.ts";
export { CallerObject } from "./objects/caller-object.ts";
