/** The code that an isolate loads only when it is needed: callers' objects, and code that few requests use. */

export { positionIn } from "../core/jobs/starting/order.ts";
export { documents } from "./app/discovery.ts";
export { cardOf } from "./built-in/card-of.ts";
export { CallerObject } from "./caller/caller-object.ts";
export { doorOf } from "./doors/doors.ts";
export { answerPage } from "./doors/pages.ts";
export { Files } from "./files/files.ts";
export { exportSpan } from "./http/export-span.ts";
export { subscribe } from "./tasks/subscribe.ts";
