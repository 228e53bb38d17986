/** Names lines of the source files in stacks of bundled code. A runner loads it when it reports a stack. */
import { type EncodedSourceMap, originalPositionFor, TraceMap } from "@jridgewell/trace-mapping";
import { maps } from "./source-maps.ts";

/** Matches a position in a stack: the file's name without its folders, the line, and the column counted from 1. */
const POSITION_PATTERN = /[^\s()]*?([\w.-]+\.js):(\d+):(\d+)/g;

const tracers = new Map<EncodedSourceMap, TraceMap>();

/** Replaces positions in bundled files by lines of their sources. Other positions stay. */
export const inSources = (stack: string): string =>
  stack.replace(POSITION_PATTERN, (position, file: string, line: string, column: string) => {
    const map = maps[file];
    if (!map) return position;
    const tracer = tracers.get(map) ?? new TraceMap(map);
    tracers.set(map, tracer);
    const original = originalPositionFor(tracer, { line: Number(line), column: Number(column) - 1 });
    return original.source === null ? position : `${original.source}:${original.line}`;
  });
