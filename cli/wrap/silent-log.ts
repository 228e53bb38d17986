import type { Log } from "../../core/index.ts";

/** For commands, which report errors themselves. */
export const silentLog: Log = { debug() {}, info() {}, warn() {}, error() {} };
