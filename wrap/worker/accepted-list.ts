/**
 * Which changes of a wrapped server's lists are accepted without asking. The first lists count as accepted. A change that narrows
 * is accepted at once; any other change waits until somebody accepts it.
 */
import { isDeepStrictEqual } from "node:util";
import { isRecord } from "../../core/resonate/index.ts";
import {
  keyOf,
  LIST_KINDS,
  type ListEntry,
  type ListedTool,
  type Lists,
  type Snapshot,
  toolsByName,
} from "../snapshot.ts";

type Fields = Readonly<Record<string, unknown>>;

/** Creates each of the lists besides that of tools. */
const listsOf = (create: (kind: keyof Lists) => readonly ListEntry[]): Lists =>
  Object.fromEntries(LIST_KINDS.map((kind) => [kind, create(kind)])) as Lists;

/** An accepted entry stays as accepted while the server lists it. If the server removes it, it may come back. */
function narrowLists(before: Snapshot, now: Snapshot): Pick<Snapshot, "lists" | "formerLists"> {
  const acceptedLists = listsOf((kind) => [...before.lists[kind], ...(before.formerLists?.[kind] ?? [])]);
  const presentKeys = Object.fromEntries(LIST_KINDS.map((kind) => [kind, new Set(now.lists[kind].map(keyOf))]));
  const isPresent = (kind: string) => (entry: ListEntry) => presentKeys[kind]?.has(keyOf(entry)) === true;
  const formerLists = listsOf((kind) => acceptedLists[kind].filter((entry) => !isPresent(kind)(entry)));
  return {
    lists: listsOf((kind) => acceptedLists[kind].filter(isPresent(kind))),
    ...(LIST_KINDS.some((kind) => formerLists[kind].length > 0) && { formerLists }),
  };
}

/** The snapshot to list, from the accepted snapshot and the server's present one. */
export function narrow(before: Snapshot, now: Snapshot): Snapshot {
  const presentTools = toolsByName(now);
  // A tool that was narrowed or removed may return to its accepted form.
  const acceptedTools = [...before.tools, ...(before.formerTools ?? [])];
  const acceptedByName = [...new Map(acceptedTools.map((tool) => [tool.name, tool])).values()];
  const tools = acceptedByName.flatMap((tool) => {
    const present = presentTools.get(tool.name);
    return present ? [narrowTool(tool, present)] : [];
  });
  const listedTools = new Map(tools.map((tool) => [tool.name, tool]));
  const formerTools = acceptedByName.filter((tool) => !isDeepStrictEqual(tool, listedTools.get(tool.name)));
  const { acceptances, instructions, offers } = before;
  return {
    server: { ...before.server, version: now.server.version },
    revision: now.revision,
    resources: before.resources && now.resources,
    tools,
    ...(acceptances && { acceptances }),
    ...(instructions !== undefined && now.instructions !== undefined && { instructions }),
    ...narrowLists(before, now),
    offers: offers.filter((offer) => now.offers.includes(offer)),
    ...(now.omissions && { omissions: now.omissions }),
    ...(formerTools.length > 0 && { formerTools }),
  };
}

/** The accepted snapshot, with the entries of these names, or addresses, replaced by the server's present ones. */
export function acceptEntries(before: Snapshot, now: Snapshot, names: readonly string[]): Snapshot {
  const isOther = (entry: ListEntry) => !names.includes(keyOf(entry));
  // A tool may have a field `uri`, which does not identify it.
  const isOtherTool = ({ name }: ListedTool) => !names.includes(name);
  const { lists, formerTools, formerLists } = before;
  return {
    ...before,
    tools: [...before.tools.filter(isOtherTool), ...now.tools.filter((tool) => !isOtherTool(tool))],
    ...(formerTools && { formerTools: formerTools.filter(isOtherTool) }),
    lists: listsOf((kind) => [...lists[kind].filter(isOther), ...now.lists[kind].filter((entry) => !isOther(entry))]),
    ...(formerLists && { formerLists: listsOf((kind) => formerLists[kind].filter(isOther)) }),
  };
}

function narrowTool(before: ListedTool, now: ListedTool): ListedTool {
  const fields = Object.entries(before).flatMap(([key, value]): [string, unknown][] => {
    if (now[key] === undefined) return [];
    if (key === "inputSchema" && isNarrower(value, now[key])) return [[key, now[key]]];
    // Results fit the server's new schema, not the accepted one, so neither is listed.
    return key === "outputSchema" && !isDeepStrictEqual(value, now[key]) ? [] : [[key, value]];
  });
  const annotations = narrowHints(before.annotations ?? {}, now.annotations ?? {});
  const { annotations: _, execution: __, ...rest } = Object.fromEntries(fields) as unknown as ListedTool;
  return {
    ...rest,
    ...((before.annotations || Object.keys(annotations).length > 0) && { annotations }),
    // Only the worker uses `execution`.
    ...(now.execution !== undefined && { execution: now.execution }),
  };
}

/** The values of hints that make people and this server trust a tool more. */
const TRUST_HINTS: Fields = { readOnlyHint: true, idempotentHint: true, destructiveHint: false, openWorldHint: false };

function narrowHints(before: Fields, now: Fields): Fields {
  const names = [...new Set([...Object.keys(before), ...Object.keys(now)])];
  const hints = names.map((name) => {
    const needsConsent = Object.hasOwn(TRUST_HINTS, name) ? now[name] === TRUST_HINTS[name] : now[name] !== undefined;
    return [name, needsConsent ? before[name] : now[name]];
  });
  return Object.fromEntries(hints.filter(([, value]) => value !== undefined));
}

/** Keywords of a JSON schema that narrow it with a smaller number, or with a larger number. */
const MAXIMUM_KEYWORDS = /^(maximum|exclusiveMaximum|max(Length|Items|Properties))$/;
const MINIMUM_KEYWORDS = /^(minimum|exclusiveMinimum|min(Length|Items|Properties))$/;

/** Whether a schema admits no more than the one before, and has no new texts; false if that is hard to decide. */
function isNarrower(before: unknown, now: unknown): boolean {
  if (isDeepStrictEqual(before, now)) return true;
  if (!isRecord(before) || !isRecord(now)) return false;
  const fields = (value: unknown): Fields => (isRecord(value) ? value : {});
  const list = (value: unknown): unknown[] => (Array.isArray(value) ? value : []);
  const oldProperties = fields(before.properties);
  const newProperties = fields(now.properties);
  return [...new Set([...Object.keys(before), ...Object.keys(now)])].every((key) => {
    const [a, b] = [before[key], now[key]];
    if (isDeepStrictEqual(a, b)) return true;
    if (key === "properties")
      return Object.keys(newProperties).every(
        (name) => Object.hasOwn(oldProperties, name) && isNarrower(oldProperties[name], newProperties[name]),
      );
    if (key === "required") {
      const isStillRequired = (name: unknown) => list(b).includes(name) || !Object.hasOwn(newProperties, String(name));
      return list(a).every(isStillRequired) && list(b).every((name) => Object.hasOwn(oldProperties, String(name)));
    }
    if (key === "enum") return Array.isArray(a) && Array.isArray(b) && b.every((value) => a.includes(value));
    if (key === "items") return isNarrower(a, b);
    if (key === "additionalProperties") return b === false;
    if (MAXIMUM_KEYWORDS.test(key)) return typeof b === "number" && (a === undefined || b < Number(a));
    if (MINIMUM_KEYWORDS.test(key)) return typeof b === "number" && (a === undefined || b > Number(a));
    return b === undefined && /^(title|description|examples)$/.test(key);
  });
}
