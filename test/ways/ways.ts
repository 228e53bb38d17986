/**
 * How much of the project runs for one call: for a start of a job at the edge, and for the job in a worker.
 *
 *   npm run ways -- [--lists DIR] [--budget]
 *
 * Counts the named functions that run, by V8's precise coverage, and their files and lines. `--lists` writes them into DIR, a
 * file for each way. With `--budget` it exits with 1 if a way is over its budget. The counts are no times: they do not depend on
 * the machine.
 */
import { readFileSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { startResonate } from "../support/resonate.ts";
import {
  type Budget,
  type Counts,
  type CoveredFunction,
  count,
  countByFolder,
  listFunctions,
  outsideOfFeatures,
  overBudget,
} from "./count.ts";
import { measureJob, measureStart } from "./measure.ts";

const BUDGETS = {
  start: { functions: 112, outside: { functions: 95, files: 30 } },
  job: { functions: 290, outside: { functions: 210, files: 46 } },
} satisfies Record<string, Budget>;

interface Way {
  name: keyof typeof BUDGETS;
  title: string;
  functions: CoveredFunction[];
}

const ROOT = join(import.meta.dirname, "../..");
const sources = new Map<string, string>();

const { values } = parseArgs({ options: { lists: { type: "string" }, budget: { type: "boolean", default: false } } });

const ways = await measureWays();
for (const { title, functions } of ways) console.log(`${title}: ${summary(functions)}`);
console.log(`\n${table(ways)}`);
if (values.lists !== undefined) {
  await mkdir(values.lists, { recursive: true });
  for (const { name, functions } of ways) {
    await writeFile(join(values.lists, `${name}.txt`), listFunctions(functions, readSource));
  }
}
const excess = ways.flatMap(({ name, title, functions }) =>
  overBudget(functions, BUDGETS[name], readSource).map((line) => `${title}: ${line}`),
);
if (excess.length > 0) console.log(`\nOver budget:\n${excess.join("\n")}`);
process.exit(values.budget && excess.length > 0 ? 1 : 0);

async function measureWays(): Promise<Way[]> {
  await using resonate = await startResonate({ own: true });
  return [
    { name: "start", title: "A start at the edge", functions: await measureStart(resonate) },
    { name: "job", title: "A job in a worker", functions: await measureJob(resonate) },
  ];
}

function readSource(file: string): string {
  const text = sources.get(file) ?? readFileSync(join(ROOT, file), "utf8");
  sources.set(file, text);
  return text;
}

function summary(functions: readonly CoveredFunction[]): string {
  const [all, outside] = [count(functions, readSource), count(outsideOfFeatures(functions), readSource)];
  return (
    `${all.functions} named functions in ${all.files} files, ${all.lines} lines; ` +
    `outside of features/ and tools/ ${outside.functions} in ${outside.files}`
  );
}

/** A Markdown table with a row for each folder. */
function table(ways: readonly Way[]): string {
  const columns = ways.map(({ functions }) => countByFolder(functions, readSource));
  const folders = [...new Set(columns.flatMap((column) => [...column.keys()]))].toSorted();
  const cells = (counts?: Counts) => [counts?.functions, counts?.files, counts?.lines].map((value) => `${value ?? ""}`);
  const rows = [
    ["folder", ...ways.flatMap(({ name }) => [`${name}: functions`, "files", "lines"])],
    ["---", ...ways.flatMap(() => ["---:", "---:", "---:"])],
    ...folders.map((folder) => [folder, ...columns.flatMap((column) => cells(column.get(folder)))]),
  ];
  return rows.map((row) => `| ${row.join(" | ")} |`).join("\n");
}
