/**
 * Which changes of a wrapped server's lists are accepted without asking. The first lists count as accepted. A change that narrows
 * is accepted at once; any other change waits until somebody accepts it.
 */
import { isDeepStrictEqual } from "node:util";
import { isRecord } from "../../core/resonate/json.ts";
import { keyOf, type Listed, type ListedTool, type Lists, type Snapshot } from "../snapshot.ts";

type Fields = Readonly<Record<string, unknown>>;

/** If two tools have the same name, the first counts. */
function byName({ tools }: Snapshot): Map<string, ListedTool> {
  const all = new Map<string, ListedTool>();
  for (const tool of tools) if (!all.has(tool.name)) all.set(tool.name, tool);
  return all;
}

const KINDS = ["prompts", "resources", "resourceTemplates"] as const;

/** Makes each of the lists besides that of tools. */
const listsOf = (make: (kind: (typeof KINDS)[number]) => readonly Listed[]): Lists =>
  Object.fromEntries(KINDS.map((kind) => [kind, make(kind)])) as Lists;

/** An accepted entry stays as accepted while the server lists it. If the server removes it, it may come back. */
function narrowedLists(before: Snapshot, now: Snapshot): Pick<Snapshot, "lists" | "agreedLists"> {
  const agreed = listsOf((kind) => [...before.lists[kind], ...(before.agreedLists?.[kind] ?? [])]);
  const there = Object.fromEntries(KINDS.map((kind) => [kind, new Set(now.lists[kind].map(keyOf))]));
  const isThere = (kind: string) => (entry: Listed) => there[kind]?.has(keyOf(entry)) === true;
  const gone = listsOf((kind) => agreed[kind].filter((entry) => !isThere(kind)(entry)));
  return {
    lists: listsOf((kind) => agreed[kind].filter(isThere(kind))),
    ...(KINDS.some((kind) => gone[kind].length > 0) && { agreedLists: gone }),
  };
}

/** The snapshot to list, from the accepted snapshot and the server's present one. */
export function narrowed(before: Snapshot, now: Snapshot): Snapshot {
  const listed = byName(now);
  // A tool that was narrowed or removed may return to its accepted form.
  const agreed = [...new Map([...before.tools, ...(before.agreed ?? [])].map((tool) => [tool.name, tool])).values()];
  const tools = agreed.flatMap((tool) => {
    const there = listed.get(tool.name);
    return there ? [narrowedTool(tool, there)] : [];
  });
  const kept = new Map(tools.map((tool) => [tool.name, tool]));
  const others = agreed.filter((tool) => !isDeepStrictEqual(tool, kept.get(tool.name)));
  const { acceptances, instructions, offers } = before;
  return {
    server: { ...before.server, version: now.server.version },
    revision: now.revision,
    resources: before.resources && now.resources,
    tools,
    ...(acceptances && { acceptances }),
    ...(instructions !== undefined && now.instructions !== undefined && { instructions }),
    ...narrowedLists(before, now),
    offers: offers.filter((offer) => now.offers.includes(offer)),
    ...(now.left && { left: now.left }),
    ...(others.length > 0 && { agreed: others }),
  };
}

/** The accepted snapshot, with the entries of these names, or addresses, replaced by the server's present ones. */
export function accepted(before: Snapshot, now: Snapshot, names: readonly string[]): Snapshot {
  const isOther = (entry: Listed) => !names.includes(keyOf(entry));
  // A tool may have a field `uri`, which does not identify it.
  const isOtherTool = ({ name }: ListedTool) => !names.includes(name);
  const { lists, agreed, agreedLists } = before;
  return {
    ...before,
    tools: [...before.tools.filter(isOtherTool), ...now.tools.filter((tool) => !isOtherTool(tool))],
    ...(agreed && { agreed: agreed.filter(isOtherTool) }),
    lists: listsOf((kind) => [...lists[kind].filter(isOther), ...now.lists[kind].filter((entry) => !isOther(entry))]),
    ...(agreedLists && { agreedLists: listsOf((kind) => agreedLists[kind].filter(isOther)) }),
  };
}

function narrowedTool(agreed: ListedTool, now: ListedTool): ListedTool {
  const kept = Object.entries(agreed).flatMap(([key, value]): [string, unknown][] => {
    if (now[key] === undefined) return [];
    if (key === "inputSchema" && narrows(value, now[key])) return [[key, now[key]]];
    // Results fit the server's new schema, not the accepted one, so neither is listed.
    return key === "outputSchema" && !isDeepStrictEqual(value, now[key]) ? [] : [[key, value]];
  });
  const annotations = hints(agreed.annotations ?? {}, now.annotations ?? {});
  const { annotations: _, execution: __, ...rest } = Object.fromEntries(kept) as unknown as ListedTool;
  return {
    ...rest,
    ...((agreed.annotations || Object.keys(annotations).length > 0) && { annotations }),
    // Only the worker uses `execution`.
    ...(now.execution !== undefined && { execution: now.execution }),
  };
}

/** The values of hints that make people and this server trust a tool more. */
const TRUSTED: Fields = { readOnlyHint: true, idempotentHint: true, destructiveHint: false, openWorldHint: false };

function hints(agreed: Fields, now: Fields): Fields {
  const names = [...new Set([...Object.keys(agreed), ...Object.keys(now)])];
  const kept = names.map((name) => {
    const isHeld = Object.hasOwn(TRUSTED, name) ? now[name] === TRUSTED[name] : now[name] !== undefined;
    return [name, isHeld ? agreed[name] : now[name]];
  });
  return Object.fromEntries(kept.filter(([, value]) => value !== undefined));
}

/** Keywords of a JSON schema that narrow it with a smaller number (`UPPER`) or a larger number (`LOWER`). */
const UPPER = /^(maximum|exclusiveMaximum|max(Length|Items|Properties))$/;
const LOWER = /^(minimum|exclusiveMinimum|min(Length|Items|Properties))$/;

/** Whether a schema admits no more than the one before, and has no new texts; false if that cannot be told easily. */
function narrows(before: unknown, now: unknown): boolean {
  if (isDeepStrictEqual(before, now)) return true;
  if (!isRecord(before) || !isRecord(now)) return false;
  const fields = (value: unknown): Fields => (isRecord(value) ? value : {});
  const list = (value: unknown): unknown[] => (Array.isArray(value) ? value : []);
  const [had, has] = [fields(before.properties), fields(now.properties)];
  return [...new Set([...Object.keys(before), ...Object.keys(now)])].every((key) => {
    const [a, b] = [before[key], now[key]];
    if (isDeepStrictEqual(a, b)) return true;
    if (key === "properties")
      return Object.keys(has).every((name) => Object.hasOwn(had, name) && narrows(had[name], has[name]));
    if (key === "required") {
      const isKept = list(a).every((name) => list(b).includes(name) || !Object.hasOwn(has, String(name)));
      return isKept && list(b).every((name) => Object.hasOwn(had, String(name)));
    }
    if (key === "enum") return Array.isArray(a) && Array.isArray(b) && b.every((value) => a.includes(value));
    if (key === "items") return narrows(a, b);
    if (key === "additionalProperties") return b === false;
    if (UPPER.test(key)) return typeof b === "number" && (a === undefined || b < Number(a));
    if (LOWER.test(key)) return typeof b === "number" && (a === undefined || b > Number(a));
    return b === undefined && /^(title|description|examples)$/.test(key);
  });
}

/** The longest text in a line about a difference, in characters, and the largest number of lines. */
const SHOWN = 200;
const LINES = 40;

/** The differences between two snapshots, one line each; `whole`: with complete texts and all lines. */
export function differences(before: Snapshot, now: Snapshot, whole = false): string[] {
  const width = whole ? Number.POSITIVE_INFINITY : SHOWN;
  const changed = (what: string, a: Fields, b: Fields) =>
    [...new Set([...Object.keys(a), ...Object.keys(b)])]
      .filter((key) => !isDeepStrictEqual(a[key], b[key]))
      .map((key) => `${what}${key}: ${between(a[key], b[key], width)}`);
  /** The changes of a list; `rest`: what is shown of a new entry. */
  const changesOf = <Each extends Fields>(
    what: string,
    before: ReadonlyMap<string, Each>,
    now: ReadonlyMap<string, Each>,
    flat: (entry: Each) => Fields = (entry) => entry,
    rest = flat,
  ) => [
    ...[...before.keys()].filter((key) => !now.has(key)).map((key) => `- ${what}${shown(key, SHOWN)} is gone`),
    ...[...now].flatMap(([key, entry]) => {
      const there = before.get(key);
      if (there) return changed(`~ ${what}${shown(key, SHOWN)} `, flat(there), flat(entry));
      return [`+ ${what}${shown(key, SHOWN)} is new: ${shown(JSON.stringify(rest(entry)), width)}`];
    }),
  ];
  const about = ({ server: { name, title }, instructions, resources, offers }: Snapshot) =>
    ({ name, title, instructions, resources, offers }) satisfies Fields;
  const byKey = ({ lists }: Snapshot, kind: keyof Lists) => new Map(lists[kind].map((entry) => [keyOf(entry), entry]));
  const lines = [
    ...changed("server ", about(before), about(now)),
    ...changesOf(
      "",
      byName(before),
      byName(now),
      ({ annotations, execution: _, ...rest }) => ({ ...annotations, ...rest }),
      ({ name: _, ...rest }) => rest,
    ),
    ...KINDS.flatMap((kind) => changesOf(`${kind.slice(0, -1)} `, byKey(before, kind), byKey(now, kind))),
  ];
  const more = lines.length - LINES;
  return whole || more <= 0 ? lines : [...lines.slice(0, LINES), `… and ${more} more`];
}

/** Shows two values, starting a little before their first difference if they are long. */
function between(a: unknown, b: unknown, width: number): string {
  const [old, now] = [a, b].map((value) => (value === undefined ? "none" : JSON.stringify(value))) as [string, string];
  let at = 0;
  while (at < old.length && old[at] === now[at]) at++;
  const from = old.length + now.length > width ? Math.max(0, at - 20) : 0;
  const part = (text: string) => `${from > 0 ? "…" : ""}${shown(text.slice(from), width)}`;
  return `${part(old)} → ${part(now)}`;
}

/** The text, cut to `width` characters, with escapes for the characters that a terminal does not show as they are. */
const shown = (text: string, width: number): string =>
  (text.length > width ? `${text.slice(0, width)}…` : text).replace(
    /[\p{C}\p{Zl}\p{Zp}]/gu,
    (character) => `\\u{${character.codePointAt(0)?.toString(16)}}`,
  );
