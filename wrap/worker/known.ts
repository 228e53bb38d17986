/** The servers that are wrapped in this process. */
import type { WrapOptions } from "../wrap-options.ts";

/** A server, and where its snapshot is. */
export interface Known {
  options: WrapOptions;
  snapshot: URL | undefined;
}

/** Every copy of this module has them in common. */
const KNOWN = Symbol.for("durable-mcp-edge.wrapped");
type Holder = { [KNOWN]?: Known[] };

/** The servers that modules which were loaded so far wrap. */
export const known = (): readonly Known[] => (globalThis as Holder)[KNOWN] ?? [];

export function makeKnown(server: Known): void {
  (globalThis as Holder)[KNOWN] = [...known(), server];
}
