import type { Log } from "../../core/index.ts";

/** A log for commands, which report errors themselves. */
export const silentLog: Log = { debug() {}, info() {}, warn() {}, error() {} };
