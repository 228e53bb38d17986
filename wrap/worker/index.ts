/** `durable-mcp-edge/wrap/worker`: makes the calls to a wrapped server; only workers import it. */
import type { Implementation } from "../../core/author/index.ts";
import type { WrapDefinition } from "../index.ts";
import { implementationsOf, type RunOptions } from "./implementations.ts";

export type { RunOptions } from "./implementations.ts";

/**
 * The durable functions of a wrapped server's jobs. The worker connects to the server for the first call and keeps the
 * connection. It restarts a program that has ended.
 *
 * @example
 * const runs: readonly Implementation[] = runWrapped(wrapServer({ name: "acme", command: "python", args: ["server.py"] }));
 */
export function runWrapped(definition: WrapDefinition, options: RunOptions = {}): readonly Implementation[] {
  return implementationsOf(definition, options).functions;
}
