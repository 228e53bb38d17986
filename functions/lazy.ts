/** What an isolate loads when it is first needed: callers' objects, and what few requests use. */

export { takePosition } from "../core/jobs/starting/order.ts";
export { Discovery } from "./app/discovery.ts";
export { doorOf } from "./app/doors.ts";
export { answerPage } from "./app/page-door.ts";
export { cardOf } from "./built-in/card-of.ts";
export { CallerObject } from "./caller/caller-object.ts";
export { Files } from "./files/files.ts";
export { subscribe } from "./tasks/subscribe.ts";
export { exportSpan } from "./tracing/export-span.ts";
