/** A list of a server while it is read. Its entries are limited in number, size and depth before anything else uses them. */
import { specTypeSchemas } from "@modelcontextprotocol/client";
import { bounded, type ListedTool, MAX_TOOL } from "../snapshot.ts";

/** The limits on the tools that are read: their number, which exceeds that of offered tools as options choose among them, and size. */
const MAX_READ = 2_000;
const MAX_ALL = 4_000_000;
/** The deepest nesting of a tool's fields. */
const MAX_DEPTH = 64;
/** The largest number of sentences about single entries that are left out. */
const MAX_SENTENCES = 20;

/** The schemas by which a client validates the entries of a list. */
const SCHEMAS = {
  tool: specTypeSchemas.Tool,
  prompt: specTypeSchemas.Prompt,
  resource: specTypeSchemas.Resource,
  "template of resources": specTypeSchemas.ResourceTemplate,
};
type Noun = keyof typeof SCHEMAS;

export class ToolList {
  readonly tools: ListedTool[] = [];
  readonly left: string[] = [];
  isFull = false;
  #size = 0;
  #others = 0;
  /** The kind of the entries. */
  readonly #noun: Noun;

  constructor(noun: Noun = "tool") {
    this.#noun = noun;
  }

  add(listed: unknown): void {
    for (const each of Array.isArray(listed) ? listed : []) {
      if (this.isFull) return;
      const tool = typeof each?.name === "string" ? bounded(each) : undefined;
      const { size, reason = this.#problemIn(tool) } = tool ? measured(tool) : { size: 0 };
      if (reason !== undefined) this.#leave(tool, reason);
      else if (this.tools.length === MAX_READ || this.#size + size > MAX_ALL) this.end();
      else {
        this.#size += size;
        if (tool) this.tools.push(tool);
      }
    }
  }

  /** Why a client would refuse an entry, and with it the whole list; undefined if it would not. */
  #problemIn(entry: ListedTool | undefined): string | undefined {
    if (!entry) return "it has no name";
    const { issues } = SCHEMAS[this.#noun]["~standard"].validate(entry) as { issues?: readonly Issue[] };
    const [issue] = issues ?? [];
    const path = issue?.path?.map((part) => (typeof part === "object" ? part.key : part)).join(".");
    return issue && `${path ? `${path.slice(0, 100)}: ` : ""}${issue.message.slice(0, 200)}`;
  }

  #leave(tool: ListedTool | undefined, reason: string): void {
    const shown = tool ? JSON.stringify(tool.name.slice(0, 60)) : `A ${this.#noun}`;
    if (++this.#others <= MAX_SENTENCES) this.left.push(`${shown} is not read: ${reason}.`);
    else if (this.#others === MAX_SENTENCES + 1) this.left.push(`More ${this.#noun}s are not read, for such reasons.`);
    // A list of nothing but such entries must end, too.
    if (this.#others === MAX_READ) this.end();
  }

  /** Reads no more of the server's list, and reports that; `why`: how the list exceeds the limits. */
  end(why = `is longer than ${MAX_READ} ${this.#noun}s or ${MAX_ALL} characters`): void {
    this.isFull = true;
    this.left.push(`Its list ${why}: what comes after the first ${this.tools.length} is not read.`);
  }
}

type Issue = { message: string; path?: readonly (PropertyKey | { key: PropertyKey })[] };

/** The approximate size of a tool in characters of JSON, or why it is refused. Not recursive, unlike `JSON.stringify`. */
function measured(tool: ListedTool): { size: number; reason?: string } {
  let size = 0;
  const open: [value: unknown, depth: number][] = [[tool, 0]];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const [value, depth] = next;
    size += typeof value === "string" ? value.length + 2 : 4;
    if (depth > MAX_DEPTH) return { size, reason: `it is nested more than ${MAX_DEPTH} deep` };
    if (typeof value === "object" && value !== null) {
      for (const key in value) {
        size += Array.isArray(value) ? 1 : key.length + 3;
        open.push([(value as Record<string, unknown>)[key], depth + 1]);
        if (size > MAX_TOOL) break;
      }
    }
    if (size > MAX_TOOL) return { size, reason: `it is described in more than ${MAX_TOOL} characters` };
  }
  return { size };
}
