import type { EncodedSourceMap } from "@jridgewell/trace-mapping";

/** The source maps of bundled files, by the files' names. The build of the edge puts those of its files here. */
export const maps: Readonly<Record<string, EncodedSourceMap>> = {};
