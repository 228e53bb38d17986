/** The files of a bundle: code, source maps, and for the runner a module with the part of the maps that it needs. */
import { dirname, relative, resolve } from "node:path";
import type { EncodedSourceMap, SourceMapSegment } from "@jridgewell/trace-mapping";
import type { BuildResult } from "esbuild";
import { isAuthors, RUNNER_MAPS } from "./plugins.ts";

/** The texts of the files that esbuild has made for the project at `root`, by their names. */
export async function filesOf({ outputFiles = [], metafile }: BuildResult, root: string): Promise<Map<string, string>> {
  const [first] = outputFiles;
  if (first === undefined) return new Map();
  const folder = dirname(first.path);
  const files = new Map(outputFiles.map(({ path, text }) => [relative(folder, path), text]));
  const imports = Object.values(metafile?.outputs ?? {}).flatMap((output) => output.imports);
  if (imports.some(({ path }) => path === `./${RUNNER_MAPS}`))
    files.set(RUNNER_MAPS, await mapsOf(files, folder, root));
  return files;
}

/** The code of {@link RUNNER_MAPS}. */
async function mapsOf(files: ReadonlyMap<string, string>, folder: string, root: string): Promise<string> {
  const reduced = [...files].map(async ([name, text]) => {
    if (!name.endsWith(".map")) return [];
    const map = await authorsLines(JSON.parse(text), folder, root);
    return map ? [[name.slice(0, -".map".length), map] as const] : [];
  });
  return `export const maps = ${JSON.stringify(Object.fromEntries((await Promise.all(reduced)).flat()))};\n`;
}

/**
 * Reduces the source map of a file in `folder` to the lines of the author's files, whose paths become relative to `root`: with
 * columns, and with the files of the engine and the libraries, it would be twenty times as large. Undefined if it has no such
 * files.
 */
async function authorsLines(
  map: EncodedSourceMap,
  folder: string,
  root: string,
): Promise<EncodedSourceMap | undefined> {
  const { decodedMappings, encodedMappings, TraceMap } = await import("@jridgewell/trace-mapping");
  const paths = map.sources.map((source) => resolve(folder, source ?? ""));
  const authors = paths.filter(isAuthors);
  if (authors.length === 0) return undefined;
  const nth = paths.map((path) => authors.indexOf(path));
  const renumbered = ([column, source = -1, line = 0]: SourceMapSegment): SourceMapSegment => {
    const of = nth[source] ?? -1;
    return of < 0 ? [column] : [column, of, line, 0];
  };
  const isNext = ([, ...to]: SourceMapSegment, i: number, all: SourceMapSegment[]) =>
    i === 0 || `${to}` !== `${all[i - 1]?.slice(1)}`;
  const lines = decodedMappings(new TraceMap(map)).map((segments) => segments.map(renumbered).filter(isNext));
  const head = { version: 3 as const, names: [], sources: authors.map((path) => relative(root, path)) };
  return { ...head, mappings: encodedMappings(new TraceMap({ ...head, mappings: lines })) };
}
