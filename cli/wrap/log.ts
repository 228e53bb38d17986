import type { Log } from "../../core/index.ts";

/** A command says in its own words what goes wrong. */
export const quietLog: Log = { debug() {}, info() {}, warn() {}, error() {} };
