/** A list of a server as it is read: bounded in number, in size and in depth, before anything else is done with them. */
import { specTypeSchemas } from "@modelcontextprotocol/client";
import { bounded, type ListedTool, MAX_TOOL } from "../snapshot.ts";

/** The most tools that are read: more than are offered, since some may be chosen. All of them have up to `MAX_ALL` characters. */
const MAX_READ = 2_000;
const MAX_ALL = 4_000_000;
/** How deep the fields of a tool are nested at most. */
const MAX_DEPTH = 64;
/** The most sentences about single tools. */
const MAX_SENTENCES = 20;

/** What a client checks the entries of a list by. */
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
  /** What the list is of. */
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
      else if (this.tools.length === MAX_READ || this.#size + size > MAX_ALL) this.#end();
      else {
        this.#size += size;
        if (tool) this.tools.push(tool);
      }
    }
  }

  /** Why a client would not take an entry, and the list that it is in with it; undefined for one that it takes. */
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
    // A list of nothing else does not go on forever.
    if (this.#others === MAX_READ) this.#end();
  }

  #end(): void {
    this.isFull = true;
    this.left.push(
      `Its list is longer than ${MAX_READ} ${this.#noun}s or ${MAX_ALL} characters: what comes after the first ${this.tools.length} is not read.`,
    );
  }
}

type Issue = { message: string; path?: readonly (PropertyKey | { key: PropertyKey })[] };

/** About how many characters of JSON a tool takes, or why it is too much. Not recursive, as `JSON.stringify` is. */
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
