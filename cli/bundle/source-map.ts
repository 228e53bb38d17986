import { readFileSync } from "node:fs";
import { SourceMap } from "node:module";
import { join, relative, resolve } from "node:path";
import { type Bundle, EDGE_MODULE } from "./bundle.ts";

/**
 * Returns a function that replaces locations in a bundle, as workerd prints them (`chunk-ABC.js:1234:5`), by locations in the
 * sources, with paths relative to the working directory (`tools/timer/timer.ts:12:9`). It loads the source map of a module at
 * the first location in it, and leaves a location unchanged if there is no map.
 */
export function mapToSources({ dir, main }: Pick<Bundle, "dir" | "main">): (text: string) => string {
  const maps = new Map<string, SourceMap | undefined>();
  const mapOf = (module: string) => {
    if (!maps.has(module)) maps.set(module, readMap(join(dir, `${module === EDGE_MODULE ? main : module}.map`)));
    return maps.get(module);
  };
  return (text) =>
    text.replace(LOCATION_PATTERN, (location, module: string, line: string, column: string) => {
      const origin = mapOf(module)?.findOrigin(Number(line), Number(column));
      if (!origin || !("fileName" in origin)) return location;
      return `${relative(process.cwd(), resolve(dir, origin.fileName))}:${origin.lineNumber}:${origin.columnNumber}`;
    });
}

/** A location in a module of the bundle, whose name has no folder. */
const LOCATION_PATTERN = /(?:file:\/\/\/bundle\/|(?<![\w./-]))([\w-]+\.js):(\d+):(\d+)/g;

function readMap(path: string): SourceMap | undefined {
  try {
    return new SourceMap(JSON.parse(readFileSync(path, "utf8")));
  } catch {
    return undefined;
  }
}
