/** The part of zod that reads JSON Schema. It is loaded on demand. */
export { fromJSONSchema } from "zod";
