/** Names lines of the source files in stacks of bundled code. A runner loads it when it reports a stack. */
import { type EncodedSourceMap, originalPositionFor, TraceMap } from "@jridgewell/trace-mapping";
import { maps } from "./source-maps.ts";

/** Matches a position in a stack: the file's name without its folders, the line, and the column counted from 1. */
const POSITION = /[^\s()]*?([\w.-]+\.js):(\d+):(\d+)/g;

const read = new Map<EncodedSourceMap, TraceMap>();

/** Replaces positions in bundled files by lines of their sources. Other positions stay. */
export const inSources = (stack: string): string =>
  stack.replace(POSITION, (position, file: string, line: string, column: string) => {
    const map = maps[file];
    if (!map) return position;
    const traced = read.get(map) ?? new TraceMap(map);
    read.set(map, traced);
    const found = originalPositionFor(traced, { line: Number(line), column: Number(column) - 1 });
    return found.source === null ? position : `${found.source}:${found.line}`;
  });
