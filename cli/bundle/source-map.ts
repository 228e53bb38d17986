import { readFileSync } from "node:fs";
import { SourceMap } from "node:module";
import { join, relative, resolve } from "node:path";
import { EDGE_MODULE } from "../launcher/local-edge.ts";
import type { Bundle } from "./bundle.ts";

/**
 * Turns places in a bundle, as workerd prints them (`index.js:1234:5`), into places in the sources, as paths from `root`
 * (`tools/timer/timer.ts:12:9`). The map is read when the first is met; without one, text stays as it is.
 */
export function sourcePlaces({ dir, main }: Pick<Bundle, "dir" | "main">, root: string): (text: string) => string {
  let map: SourceMap | null | undefined;
  const place = (found: string, line: string, column: string): string => {
    map ??= readMap(join(dir, `${main}.map`));
    const origin = map?.findOrigin(Number(line), Number(column));
    if (!origin || !("fileName" in origin)) return found;
    return `${relative(root, resolve(dir, origin.fileName))}:${origin.lineNumber}:${origin.columnNumber}`;
  };
  return (text) => (text.includes(`${EDGE_MODULE}:`) ? text.replace(PLACE, place) : text);
}

const PLACE = new RegExp(`(?:file:///bundle/|(?<![\\w./-]))${EDGE_MODULE.replace(".", "\\.")}:(\\d+):(\\d+)`, "g");

function readMap(path: string): SourceMap | undefined {
  try {
    return new SourceMap(JSON.parse(readFileSync(path, "utf8")));
  } catch {
    return undefined;
  }
}
