/** Describes the tools of a wrapped server and their policies, for people. */
import { policyOf } from "../../wrap/policy.ts";
import { chooseTools, prefixedName, type Snapshot } from "../../wrap/snapshot.ts";
import type { Update } from "../../wrap/worker/snapshot-file.ts";
import { matches, type WrapOptions } from "../../wrap/wrap-options.ts";

const cells = ({ tools }: Snapshot, options: WrapOptions): string[][] =>
  chooseTools({ tools }, options).tools.map((tool) => {
    const { once, source, freshFor, shared } = policyOf(tool, options);
    const jobs = freshFor === undefined ? "each call its own job" : `same arguments, one job${age(freshFor)}`;
    const repeat = once ? "at most once" : `repeatable (${source})`;
    return [prefixedName(tool.name, options.prefix), repeat, jobs, shared ? "all callers" : "each caller"];
  });

const age = (freshFor: number) => (freshFor === 0 ? "" : ` for ${freshFor / 1_000} s more`);

/** One line per tool: its name, whether it is repeated, which calls share a job, and which callers do. */
export function policyTable(snapshot: Snapshot, options: WrapOptions): string[] {
  const rows = [["tool", "after a crash", "jobs", "shared by"], ...cells(snapshot, options)];
  const widths = [0, 1, 2].map((i) => Math.max(...rows.map((row) => row[i]?.length ?? 0)));
  return rows.map((row) =>
    row
      .map((cell, i) => cell.padEnd(widths[i] ?? 0))
      .join("  ")
      .trimEnd(),
  );
}

/** The names that every host accepts, and the keywords that some refuse at the root of a tool's arguments. */
const COMMON_NAME = /^[A-Za-z0-9_-]{1,64}$/;
const ROOT_KEYWORDS = ["anyOf", "oneOf", "allOf"];

/** A line for each tool that some hosts refuse. */
function refusedByHosts(snapshot: Snapshot, options: WrapOptions): string[] {
  return chooseTools(snapshot, options).tools.flatMap(({ name: ownName, inputSchema }) => {
    const name = prefixedName(ownName, options.prefix);
    const isRefused = `${JSON.stringify(name)} is refused by some hosts`;
    const keyword = ROOT_KEYWORDS.find((key) => Object.hasOwn(inputSchema, key));
    return [
      ...(COMMON_NAME.test(name) ? [] : [`${isRefused}: its name is not of up to 64 letters, digits, "_" and "-".`]),
      ...(keyword === undefined ? [] : [`${isRefused}: the schema of its arguments has ${keyword} at its root.`]),
    ];
  });
}

/** One line for each tool that is left out, or that some hosts refuse, and for each pattern without a tool. */
export function omissions(snapshot: Snapshot, options: WrapOptions): string[] {
  const { tools: patterns = [], policies = {} } = options;
  const isNowhere = (pattern: string) => !snapshot.tools.some(({ name }) => matches(pattern, name));
  return [
    ...(snapshot.omissions ?? []),
    ...chooseTools(snapshot, options).omissions.map(
      ({ name, reason }) => `${JSON.stringify(name)} is left out: ${reason}.`,
    ),
    ...refusedByHosts(snapshot, options),
    ...[...new Set([...patterns, ...Object.keys(policies)])]
      .filter(isNowhere)
      .map((pattern) => `It has no tool ${JSON.stringify(pattern)}.`),
  ];
}

/** @throws {Error} if all tools are left out */
export function checkChosen(snapshot: Snapshot, options: WrapOptions): void {
  if (chooseTools(snapshot, options).tools.length > 0) return;
  const names = snapshot.tools.map(({ name }) => name.slice(0, 60));
  const more = names.length > 20 ? ` and ${names.length - 20} more` : "";
  const tools = names.length === 0 ? "It has no tools." : `Its tools are ${names.slice(0, 20).join(", ")}${more}.`;
  throw new Error(`No tool of ${options.name} would be offered. ${tools}`);
}

/** Lists the changes of a server's tools, and the command that accepts those that are held back. */
export function changes(update: Pick<Update, "changes" | "unapprovedChanges">, accept: string): string[] {
  const section = (heading: string, lines: string[]) =>
    lines.length > 0 ? [heading, ...lines.map((line) => `  ${line}`)] : [];
  return [
    ...section("Its tools have changed:", update.changes),
    ...section(`Held back until you type ${accept}:`, update.unapprovedChanges),
  ];
}
