/** A list of a server while it is read. Its entries are limited in number, size and depth before anything else uses them. */
import { specTypeSchemas } from "@modelcontextprotocol/client";
import { rounded, unheldNumberIn, unheldReason } from "../../core/resonate/index.ts";
import { type ListedTool, limitDescription, MAX_TOOL_CHARACTERS } from "../snapshot.ts";
import { outputSchemaFault } from "./output-schemas.ts";
import { tidyEntry, tidyTool } from "./protocol-values.ts";

/** How many entries are read; more than are offered, because options choose among tools. */
const MAX_ENTRIES = 2_000;
/** The maximum size of all entries together, in characters of JSON. */
const MAX_LIST_CHARACTERS = 4_000_000;
/** The deepest nesting of a tool's fields. */
const MAX_ENTRY_LEVELS = 64;
/** The maximum number of sentences about single entries that are not read, or not in full. */
const MAX_OMISSION_SENTENCES = 20;
/** How much of the place of a fault is shown. */
const MAX_PATH_CHARACTERS = 100;
/** The maximum number of pages in a row without an entry. */
const MAX_EMPTY_PAGES = 20;

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
  #emptyPages = 0;
  /** The entries so far, as JSON, and those that are not read. */
  readonly #known = new Set<string>();
  readonly #cursors = new Set<string>();
  /** The kind of the entries. */
  readonly #noun: Noun;

  constructor(noun: Noun = "tool") {
    this.#noun = noun;
  }

  /**
   * Adds the entries of a page. Returns the cursor of the next page; undefined at the end of the list. Null and an empty text mark
   * the end as well, and so does a list that begins again: many servers ignore cursors.
   */
  add(entries: unknown, nextCursor?: unknown): unknown {
    const page = Array.isArray(entries) ? entries : [];
    const isNew = page.filter((entry) => this.#addEntry(entry)).length > 0;
    this.#emptyPages = page.length === 0 ? this.#emptyPages + 1 : 0;
    if (this.isFull || nextCursor === undefined || nextCursor === null || nextCursor === "") return undefined;
    if (this.#emptyPages > MAX_EMPTY_PAGES) this.end(`has more than ${MAX_EMPTY_PAGES} empty pages in a row`);
    const cursor = JSON.stringify(nextCursor);
    const isRepeated = (page.length > 0 && !isNew) || this.#cursors.has(cursor);
    this.#cursors.add(cursor);
    return this.isFull || isRepeated ? undefined : nextCursor;
  }

  /** Returns whether the list has the entry for the first time. */
  #addEntry(entry: unknown): boolean {
    if (this.isFull) return false;
    const tidy = this.#noun === "tool" ? tidyTool : tidyEntry;
    const tool = typeof Object(entry).name === "string" ? limitDescription(tidy(entry as ListedTool)) : undefined;
    const { size, reason = this.#problemIn(tool) } = tool ? measure(tool) : { size: 0 };
    const key = reason === undefined ? JSON.stringify(tool) : `${tool?.name}: ${reason}`;
    if (tool && this.#known.has(key)) return false;
    this.#known.add(key);
    if (reason !== undefined) this.#omit(tool, `is not read: ${reason}`);
    else if (this.entries.length === MAX_ENTRIES || this.#size + size > MAX_LIST_CHARACTERS) this.end();
    else {
      this.#size += size;
      // Only an entry that has been measured is walked by code that recurses.
      if (tool) this.entries.push(rounded(tool));
    }
    return true;
  }

  /** Why a client would refuse an entry, and with it the whole list; undefined if it would not. */
  #problemIn(entry: ListedTool | undefined): string | undefined {
    if (!entry) return "it has no name";
    const unheld = unheldNumberIn(entry, true);
    if (unheld) return `it has ${unheldReason(unheld)}, at ${unheld.path.slice(0, MAX_PATH_CHARACTERS)}`;
    const { issues } = ENTRY_SCHEMAS[this.#noun]["~standard"].validate(entry) as { issues?: readonly Issue[] };
    const [issue] = issues ?? [];
    const path = issue?.path?.map((part) => (typeof part === "object" ? part.key : part)).join(".");
    return issue && `${path ? `${path.slice(0, MAX_PATH_CHARACTERS)}: ` : ""}${issue.message.slice(0, 200)}`;
  }

  /** Reports about an entry that it is not read, or not in full. */
  #omit(tool: ListedTool | undefined, what: string): void {
    this.#omissionCount += 1;
    const subject = tool ? JSON.stringify(tool.name.slice(0, 60)) : `A ${this.#noun}`;
    if (this.#omissionCount <= MAX_OMISSION_SENTENCES) {
      this.omissions.push(`${subject} ${what}.`);
    } else if (this.#omissionCount === MAX_OMISSION_SENTENCES + 1) {
      this.omissions.push(`More ${this.#noun}s are not read, or not in full, for such reasons.`);
    }
    // A list of nothing but such entries must end, too.
    if (this.#omissionCount === MAX_ENTRIES) this.end();
  }

  /** Leaves out the output schemas that clients cannot compile. */
  async checkOutputSchemas(): Promise<void> {
    for (const [i, tool] of this.entries.entries()) {
      const fault = tool.outputSchema && (await outputSchemaFault(tool.outputSchema));
      if (fault === undefined) continue;
      const { outputSchema: _, ...rest } = tool;
      this.entries[i] = rest;
      this.#omit(tool, `is listed without its output schema, which clients cannot compile: ${fault}`);
    }
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
