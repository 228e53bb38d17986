/** Counts functions, files and lines of a way through the project, from what V8 has seen run. */

/** A function that has run, with its place in the characters of its file. Its name is empty if it has none. */
export interface CoveredFunction {
  /** The path from the root of the project. */
  file: string;
  name: string;
  start: number;
  end: number;
}

export interface Counts {
  /** Functions with a name. */
  functions: number;
  files: number;
  lines: number;
}

/** Reads a file of the project, by its path from the root. */
export type ReadSource = (file: string) => string;

/** The maximal counts of a way. */
export interface Budget {
  functions: number;
  /** Outside of `features/` and `tools/`. */
  outside: { functions: number; files: number };
}

/** The functions outside of the folders in which each feature and each tool has what it alone needs. */
export const outsideOfFeatures = (way: readonly CoveredFunction[]): CoveredFunction[] =>
  way.filter(({ file }) => !/^(features|tools)\//.test(file));

/** Identifies a function: a file may have several of the same name. */
const keyOf = ({ file, start }: CoveredFunction): string => `${file}:${start}`;

/** V8 names class initializers, which no author wrote, in angle brackets. */
const isNamed = ({ name }: CoveredFunction): boolean => name !== "" && !name.startsWith("<");

/** The body of a module, which is not a function. */
const isModule = ({ name, start }: CoveredFunction): boolean => name === "" && start === 0;

/** The functions that are in each run: a keep-alive or a clock that falls into one run is no part of the way. */
export function commonFunctions(runs: readonly (readonly CoveredFunction[])[]): CoveredFunction[] {
  const [first = [], ...others] = runs;
  const keys = others.map((run) => new Set(run.map(keyOf)));
  return first.filter((each) => keys.every((run) => run.has(keyOf(each))));
}

/** An anonymous function counts with its file and its lines only, the body of a module with its file only. */
export function count(way: readonly CoveredFunction[], read: ReadSource): Counts {
  return {
    functions: new Set(way.filter(isNamed).map(keyOf)).size,
    files: new Set(way.map(({ file }) => file)).size,
    lines: new Set(way.filter((each) => !isModule(each)).flatMap((each) => linesOf(each, read))).size,
  };
}

function linesOf({ file, start, end }: CoveredFunction, read: ReadSource): string[] {
  const [first, last] = [lineAt(read(file), start), lineAt(read(file), end)];
  return Array.from({ length: last - first + 1 }, (_, i) => `${file}:${first + i}`);
}

const lineAt = (text: string, offset: number): number => text.slice(0, offset).split("\n").length;

/** The counts by folder. Folders below the second level count with it: `core/jobs/feed` is part of `core/jobs`. */
export function countByFolder(way: readonly CoveredFunction[], read: ReadSource): Map<string, Counts> {
  const folders = Map.groupBy(way, ({ file }) => file.split("/").slice(0, -1).slice(0, 2).join("/"));
  return new Map([...folders].map(([folder, functions]) => [folder, count(functions, read)]));
}

/** One line for each count that is over the budget. */
export function overBudget(way: readonly CoveredFunction[], budget: Budget, read: ReadSource): string[] {
  const [all, outside] = [count(way, read), count(outsideOfFeatures(way), read)];
  const counts: [what: string, value: number, limit: number][] = [
    ["functions", all.functions, budget.functions],
    ["functions outside of features/ and tools/", outside.functions, budget.outside.functions],
    ["files outside of features/ and tools/", outside.files, budget.outside.files],
  ];
  return counts.flatMap(([what, value, limit]) => (value > limit ? [`${value} ${what}, budget ${limit}`] : []));
}

/** A line for each function, sorted by file: its place and its name. */
export function listFunctions(way: readonly CoveredFunction[], read: ReadSource): string {
  const sorted = way.toSorted((a, b) => (a.file === b.file ? a.start - b.start : a.file < b.file ? -1 : 1));
  const lines = sorted.map(
    ({ file, name, start }) => `${file}:${lineAt(read(file), start)} ${name || "(anonymous)"}\n`,
  );
  return lines.join("");
}
