/** The wrapped servers of this process, for the commands that load a project's modules. */
import type { WrapOptions } from "../wrap-options.ts";

export interface RegisteredServer {
  options: WrapOptions;
  /** The snapshot that the edge imports. */
  snapshot: URL | undefined;
}

/** A global symbol, because several copies of this module must share the list. */
const SERVERS_SYMBOL = Symbol.for("durable-mcp-edge.wrapped");
type Holder = { [SERVERS_SYMBOL]?: RegisteredServer[] };

export const registeredServers = (): readonly RegisteredServer[] => (globalThis as Holder)[SERVERS_SYMBOL] ?? [];

export function registerServer(server: RegisteredServer): void {
  (globalThis as Holder)[SERVERS_SYMBOL] = [...registeredServers(), server];
}
