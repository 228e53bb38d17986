/** Names the lines of the sources in stacks of bundled code. Built into a module of its own, which a runner loads for a stack. */
import { type EncodedSourceMap, originalPositionFor, TraceMap } from "@jridgewell/trace-mapping";

/** A position in a stack: the file's name without its folders, the line, and the column from 1. */
const POSITION = /[^\s()]*?([\w.-]+\.js):(\d+):(\d+)/g;

/** Returns what names the lines, by the source maps of bundled files: `maps`, by the files' names. */
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
