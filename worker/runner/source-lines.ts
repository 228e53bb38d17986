/**
 * Names lines of the source files in stacks of bundled code. It is built into a module of its own, which a runner loads when it
 * reports a stack.
 */
import { type EncodedSourceMap, originalPositionFor, TraceMap } from "@jridgewell/trace-mapping";

/** Matches a position in a stack: the file's name without its folders, the line, and the column counted from 1. */
const POSITION = /[^\s()]*?([\w.-]+\.js):(\d+):(\d+)/g;

/** Returns a function that names the lines in a stack. `maps` are the source maps of bundled files, by the files' names. */
export function sourceLines(maps: Readonly<Record<string, EncodedSourceMap>>): (stack: string) => string {
  const read = new Map<string, TraceMap>();
  const mapOf = (file: string, map: EncodedSourceMap) => {
    const known = read.get(file) ?? new TraceMap(map);
    read.set(file, known);
    return known;
  };
  return (stack) =>
    stack.replace(POSITION, (position, file: string, line: string, column: string) => {
      const map = maps[file];
      if (!map) return position;
      const found = originalPositionFor(mapOf(file, map), { line: Number(line), column: Number(column) - 1 });
      return found.source === null ? position : `${found.source}:${found.line}`;
    });
}
