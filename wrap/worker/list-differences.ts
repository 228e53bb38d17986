/** Describes the differences between two snapshots of a wrapped server, for people. */
import { isDeepStrictEqual } from "node:util";
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

/** The maximum length of a text in a line about a difference. */
const MAX_TEXT_CHARACTERS = 200;
const MAX_LINES = 40;
/** How many characters before the first difference of two long values are shown. */
const CONTEXT_CHARACTERS = 20;

/** The differences between two snapshots, one line each. `isComplete`: with complete texts and all lines. */
export function differences(before: Snapshot, now: Snapshot, isComplete = false): string[] {
  const width = isComplete ? Number.POSITIVE_INFINITY : MAX_TEXT_CHARACTERS;
  const lines = [
    ...fieldChanges("server ", serverFields(before), serverFields(now), width),
    ...listChanges("", toolsByName(before), toolsByName(now), width, toolFields, ({ name: _, ...rest }) => rest),
    ...LIST_KINDS.flatMap((kind) => listChanges(`${kind.slice(0, -1)} `, byKey(before, kind), byKey(now, kind), width)),
  ];
  const omittedCount = lines.length - MAX_LINES;
  return isComplete || omittedCount <= 0 ? lines : [...lines.slice(0, MAX_LINES), `… and ${omittedCount} more`];
}

const serverFields = ({ server: { name, title }, instructions, resources, offers }: Snapshot): Fields => ({
  name,
  title,
  instructions,
  resources,
  offers,
});

const toolFields = ({ annotations, execution: _, ...rest }: ListedTool): Fields => ({ ...annotations, ...rest });

const byKey = ({ lists }: Snapshot, kind: keyof Lists): Map<string, ListEntry> =>
  new Map(lists[kind].map((entry) => [keyOf(entry), entry]));

function fieldChanges(subject: string, before: Fields, now: Fields, width: number): string[] {
  return [...new Set([...Object.keys(before), ...Object.keys(now)])]
    .filter((key) => !isDeepStrictEqual(before[key], now[key]))
    .map((key) => `${subject}${key}: ${valueChange(before[key], now[key], width)}`);
}

/** The changes of a list. `fieldsOf`: what of an entry is compared; `newFieldsOf`: what of a new entry is shown. */
function listChanges<Entry extends Fields>(
  noun: string,
  before: ReadonlyMap<string, Entry>,
  now: ReadonlyMap<string, Entry>,
  width: number,
  fieldsOf: (entry: Entry) => Fields = (entry) => entry,
  newFieldsOf = fieldsOf,
): string[] {
  const nameOf = (key: string) => `${noun}${printable(key, MAX_TEXT_CHARACTERS)}`;
  const removals = [...before.keys()].filter((key) => !now.has(key)).map((key) => `- ${nameOf(key)} is gone`);
  const changes = [...now].flatMap(([key, entry]) => {
    const oldEntry = before.get(key);
    if (oldEntry) return fieldChanges(`~ ${nameOf(key)} `, fieldsOf(oldEntry), fieldsOf(entry), width);
    return [`+ ${nameOf(key)} is new: ${printable(JSON.stringify(newFieldsOf(entry)), width)}`];
  });
  return [...removals, ...changes];
}

/** Shows two values, starting a little before their first difference if they are long. */
function valueChange(before: unknown, now: unknown, width: number): string {
  const [old, present] = [before, now].map((value) => (value === undefined ? "none" : JSON.stringify(value))) as [
    string,
    string,
  ];
  let at = 0;
  while (at < old.length && old[at] === present[at]) at++;
  const from = old.length + present.length > width ? Math.max(0, at - CONTEXT_CHARACTERS) : 0;
  const excerpt = (text: string) => `${from > 0 ? "…" : ""}${printable(text.slice(from), width)}`;
  return `${excerpt(old)} → ${excerpt(present)}`;
}

/** The text, cut to `width` characters, with escapes for the characters that a terminal does not show as they are. */
const printable = (text: string, width: number): string =>
  (text.length > width ? `${text.slice(0, width)}…` : text).replace(
    /[\p{C}\p{Zl}\p{Zp}]/gu,
    (character) => `\\u{${character.codePointAt(0)?.toString(16)}}`,
  );
