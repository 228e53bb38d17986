/** The report of a run: tables for people, and JSON. */
import { readFile } from "node:fs/promises";
import { findPackageJSON } from "node:module";
import { cpus, loadavg, release, totalmem } from "node:os";
import { join } from "node:path";
import { execa } from "execa";
import { markdownTable } from "markdown-table";
import type { Summary } from "../measure/requests.ts";
import { type Figure, isMet, type Spread, type Target } from "./figures.ts";

const ROOT = join(import.meta.dirname, "../../..");

/** The packages whose versions affect the measurements. */
const PACKAGES = [
  "@modelcontextprotocol/server",
  "@resonatehq/sdk",
  "hono",
  "zod",
  "workerd",
  "wrangler",
  "autocannon",
] as const;

export interface Report {
  made_at: string;
  form: "full" | "short";
  resonate: "embedded" | "external";
  commit: string;
  machine: { cpu: string; cores: number; memory_gb: number; kernel: string; load_before: number };
  versions: Record<string, string>;
  seconds: number;
  requests: Summary[];
  figures: Figure[];
}

/** The machine and the versions of a run. */
export async function describeRun(): Promise<Pick<Report, "made_at" | "commit" | "machine" | "versions">> {
  const [cpu] = cpus();
  const versions: Record<string, string> = { node: process.version };
  for (const name of PACKAGES) {
    const file = findPackageJSON(name, import.meta.url);
    if (file !== undefined) versions[name] = JSON.parse(await readFile(file, "utf8")).version;
  }
  return {
    made_at: new Date().toISOString(),
    commit: await commit(),
    machine: {
      cpu: cpu?.model ?? "unknown",
      cores: cpus().length,
      memory_gb: Math.round(totalmem() / 1e9),
      kernel: release(),
      load_before: loadavg()[0] ?? Number.NaN,
    },
    versions,
  };
}

/** The current commit, with a mark if files differ from it; `unknown` outside a repository. */
async function commit(): Promise<string> {
  const { stdout, failed } = await execa("git", ["describe", "--always", "--dirty", "--abbrev=12"], {
    cwd: ROOT,
    reject: false,
  });
  return failed ? "unknown" : stdout;
}

/** Renders Markdown: a line about the run, a table of requests, and a table of other figures. */
export function render({ made_at, commit, machine, versions, resonate, seconds, requests, figures }: Report): string {
  const parts = [
    `${made_at}, commit ${commit}, ${machine.cores} × ${machine.cpu}, load before ${machine.load_before.toFixed(1)}, ` +
      `Node.js ${versions.node}, workerd ${versions.workerd}, ${resonate} Resonate server, ${Math.round(seconds)} s. ` +
      "Each figure is the median, with the quartiles in brackets. Requests come over 16 connections; those about 50 jobs over 4.",
  ];
  if (requests.length > 0) parts.push(requestTable(requests));
  if (figures.length > 0) parts.push(figureTable(figures));
  return parts.join("\n\n");
}

function requestTable(requests: Summary[]): string {
  const header = ["request", "revision", "ratio to floor", "target", "met", "by CPU time"];
  const measures = ["requests/s", "p50 ms", "p99 ms", "CPU µs"].flatMap((name) => [name, "floor"]);
  const rows = requests.map(({ operation, revision, product, floor, ratio, cpu_ratio, target }) => [
    operation,
    revision,
    withQuartiles(ratio),
    ...(target === undefined ? ["", ""] : [`≥ ${target}`, yesNo(ratio.median >= target)]),
    withQuartiles(cpu_ratio),
    withQuartiles(product.requests_per_second),
    number(floor.requests_per_second.median),
    ...(["p50_ms", "p99_ms", "cpu_us"] as const).flatMap((name) => [
      number(product[name].median),
      number(floor[name].median),
    ]),
  ]);
  const columns = [...header, ...measures];
  return markdownTable([columns, ...rows], { align: columns.map((_, i) => (i < 2 ? "l" : "r")) });
}

function figureTable(figures: Figure[]): string {
  const rows = figures.map((figure) => [
    figure.name,
    withQuartiles(figure),
    figure.unit,
    ...(figure.target ? [wording(figure.target), yesNo(isMet(figure.target, figure.median))] : ["", ""]),
  ]);
  return markdownTable([["figure", "value", "unit", "target", "met"], ...rows], { align: ["l", "r", "l", "l", "l"] });
}

const yesNo = (yes: boolean) => (yes ? "yes" : "NO");
const wording = ({ at, value }: Target) => `${at === "least" ? "≥" : "≤"} ${value}`;

function withQuartiles({ median, q1, q3, n }: Spread): string {
  return n > 1 && q1 !== q3 ? `${number(median)} (${number(q1)}–${number(q3)})` : number(median);
}

/** Formats a number with three significant digits, but with its whole integer part; ratios below 2 get three decimals. */
function number(value: number): string {
  if (Number.isInteger(value)) return value.toLocaleString("en");
  const size = Math.abs(value);
  const digits = size >= 100 ? 0 : size >= 10 ? 1 : size >= 2 ? 2 : 3;
  return value.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });
}
