/** A list of a server while it is read. Its entries are limited in number, size and depth before anything else uses them. */
import { specTypeSchemas } from "@modelcontextprotocol/client";
import { type ListedTool, limitDescription, MAX_TOOL_CHARACTERS } from "../snapshot.ts";

/** How many entries are read; more than are offered, because options choose among tools. */
const MAX_ENTRIES = 2_000;
/** The maximum size of all entries together, in characters of JSON. */
const MAX_LIST_CHARACTERS = 4_000_000;
/** The deepest nesting of a tool's fields. */
const MAX_ENTRY_LEVELS = 64;
/** The maximum number of sentences about single entries that are not read. */
const MAX_OMISSION_SENTENCES = 20;

/** The schemas by which a client validates the entries of a list. */
const ENTRY_SCHEMAS = {
  tool: specTypeSchemas.Tool,
  prompt: specTypeSchemas.Prompt,
  resource: specTypeSchemas.Resource,
  "template of resources": specTypeSchemas.ResourceTemplate,
};
export type Noun = keyof typeof ENTRY_SCHEMAS;

export class EntryList {
  readonly entries: ListedTool[] = [];
  readonly omissions: string[] = [];
  isFull = false;
  #size = 0;
  #omissionCount = 0;
  /** The kind of the entries. */
  readonly #noun: Noun;

  constructor(noun: Noun = "tool") {
    this.#noun = noun;
  }

  add(entries: unknown): void {
    for (const entry of Array.isArray(entries) ? entries : []) {
      if (this.isFull) return;
      const tool = typeof entry?.name === "string" ? limitDescription(entry) : undefined;
      const { size, reason = this.#problemIn(tool) } = tool ? measure(tool) : { size: 0 };
      if (reason !== undefined) this.#omit(tool, reason);
      else if (this.entries.length === MAX_ENTRIES || this.#size + size > MAX_LIST_CHARACTERS) this.end();
      else {
        this.#size += size;
        if (tool) this.entries.push(tool);
      }
    }
  }

  /** Why a client would refuse an entry, and with it the whole list; undefined if it would not. */
  #problemIn(entry: ListedTool | undefined): string | undefined {
    if (!entry) return "it has no name";
    const { issues } = ENTRY_SCHEMAS[this.#noun]["~standard"].validate(entry) as { issues?: readonly Issue[] };
    const [issue] = issues ?? [];
    const path = issue?.path?.map((part) => (typeof part === "object" ? part.key : part)).join(".");
    return issue && `${path ? `${path.slice(0, 100)}: ` : ""}${issue.message.slice(0, 200)}`;
  }

  #omit(tool: ListedTool | undefined, reason: string): void {
    this.#omissionCount += 1;
    const subject = tool ? JSON.stringify(tool.name.slice(0, 60)) : `A ${this.#noun}`;
    if (this.#omissionCount <= MAX_OMISSION_SENTENCES) {
      this.omissions.push(`${subject} is not read: ${reason}.`);
    } else if (this.#omissionCount === MAX_OMISSION_SENTENCES + 1) {
      this.omissions.push(`More ${this.#noun}s are not read, for such reasons.`);
    }
    // A list of nothing but such entries must end, too.
    if (this.#omissionCount === MAX_ENTRIES) this.end();
  }

  /** Reads no more of the server's list, and reports that; `why`: how the list exceeds the limits. */
  end(why = `is longer than ${MAX_ENTRIES} ${this.#noun}s or ${MAX_LIST_CHARACTERS} characters`): void {
    this.isFull = true;
    this.omissions.push(`Its list ${why}: what comes after the first ${this.entries.length} is not read.`);
  }
}

type Issue = { message: string; path?: readonly (PropertyKey | { key: PropertyKey })[] };

/** The approximate size of a tool in characters of JSON, or why it is refused. Not recursive, unlike `JSON.stringify`. */
function measure(tool: ListedTool): { size: number; reason?: string } {
  let size = 0;
  const open: [value: unknown, depth: number][] = [[tool, 0]];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const [value, depth] = next;
    size += typeof value === "string" ? value.length + 2 : 4;
    if (depth > MAX_ENTRY_LEVELS) return { size, reason: `it is nested more than ${MAX_ENTRY_LEVELS} deep` };
    if (typeof value === "object" && value !== null) {
      for (const key in value) {
        size += Array.isArray(value) ? 1 : key.length + 3;
        open.push([(value as Record<string, unknown>)[key], depth + 1]);
        if (size > MAX_TOOL_CHARACTERS) break;
      }
    }
    if (size > MAX_TOOL_CHARACTERS)
      return { size, reason: `it is described in more than ${MAX_TOOL_CHARACTERS} characters` };
  }
  return { size };
}
