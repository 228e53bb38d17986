/** What an isolate loads when it is first needed: callers' objects, and the doors that few requests use. */
export { throughDoor } from "./app/resonate-door.ts";
export { receive as receiveCallback } from "./callbacks/callbacks.ts";
export { CallerObject } from "./caller/caller-object.ts";
export { Files } from "./files/files.ts";
export { operate } from "./operate/routes.ts";
export { receive as receiveReports } from "./reports/reports.ts";
export { subscribe } from "./tasks/subscribe.ts";
