/** What the edge loads when it is needed: the callers' objects, and what is off the way of most requests. */
export { CallerObject } from "./caller/caller-object.ts";
export { operate } from "./operate/routes.ts";
