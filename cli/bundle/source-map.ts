import { readFileSync } from "node:fs";
import { SourceMap } from "node:module";
import { join, relative, resolve } from "node:path";
import { type Bundle, EDGE_MODULE } from "./bundle.ts";

/**
 * Returns a function that replaces locations in a bundle, as workerd prints them (`index.js:1234:5`), by locations in the
 * sources, with paths relative to the working directory (`tools/timer/timer.ts:12:9`). It loads the source map at the first
 * location, and returns the text unchanged if there is no map.
 */
export function mapToSources({ dir, main }: Pick<Bundle, "dir" | "main">): (text: string) => string {
  let map: SourceMap | null | undefined;
  const locate = (location: string, line: string, column: string): string => {
    map ??= readMap(join(dir, `${main}.map`));
    const origin = map?.findOrigin(Number(line), Number(column));
    if (!origin || !("fileName" in origin)) return location;
    return `${relative(process.cwd(), resolve(dir, origin.fileName))}:${origin.lineNumber}:${origin.columnNumber}`;
  };
  return (text) => (text.includes(`${EDGE_MODULE}:`) ? text.replace(LOCATION_PATTERN, locate) : text);
}

const LOCATION_PATTERN = new RegExp(
  `(?:file:///bundle/|(?<![\\w./-]))${EDGE_MODULE.replace(".", "\\.")}:(\\d+):(\\d+)`,
  "g",
);

function readMap(path: string): SourceMap | undefined {
  try {
    return new SourceMap(JSON.parse(readFileSync(path, "utf8")));
  } catch {
    return undefined;
  }
}
