/** Values as they arrive from a wrapped server. */
export type JsonObject = Record<string, unknown>;
