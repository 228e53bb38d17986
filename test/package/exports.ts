/** The exports of the public modules, with the comments and examples in their sources. */
import { readFile } from "node:fs/promises";
import { dirname, join } from "node:path";

/** The public modules by their import specifiers. */
export const MODULES: Readonly<Record<string, string>> = {
  "durable-mcp-edge": "core/index.ts",
  "durable-mcp-edge/edge": "functions/edge.ts",
  "durable-mcp-edge/client": "client/index.ts",
  "durable-mcp-edge/worker": "worker/index.ts",
  "durable-mcp-edge/resonate": "server/object/object-server.ts",
  "durable-mcp-edge/runner": "worker/runner/runner-server.ts",
  "durable-mcp-edge/testing": "testing/index.ts",
  "durable-mcp-edge/wrap": "wrap/index.ts",
  "durable-mcp-edge/wrap/worker": "wrap/worker/index.ts",
};

export interface Exported {
  module: string;
  name: string;
  isType: boolean;
  /** The path of the source file that declares it. */
  file: string;
  /** The comment before its declaration, without its stars; empty when there is none. */
  doc: string;
}

/** An example of a documented declaration or member. */
export interface Example {
  module: string;
  /** The name of the declaration or member: `startStack`, `Context.step`. */
  of: string;
  code: string;
}

/** Matches a comment and what follows it: a declaration of a module, or a member of a declaration. */
const DOCUMENTED =
  /\/\*\*((?:(?!\*\/)[\s\S])*)\*\/\s*(?:export (?:async |abstract )?(const|function|class|interface|type) (\w+)|(?:readonly )?(\w+)\??[(<:])?/g;

/** All exports of a module, whether it declares them or reexports them. */
export async function exportsOf(module: string): Promise<Exported[]> {
  const path = MODULES[module] ?? "";
  const source = await readFile(path, "utf8");
  const found: Exported[] = [];
  for (const [, isTypes, list = "", from = ""] of source.matchAll(/export (type )?\{([^}]*)\} from "([^"]+)"/g)) {
    const file = join(dirname(path), from);
    for (const entry of list.split(",").map((text) => text.trim())) {
      if (entry === "") continue;
      const name = entry.replace(/^type /, "");
      const isType = isTypes !== undefined || entry.startsWith("type ");
      found.push({ module, name, isType, file, doc: await docOf(file, name) });
    }
  }
  for (const [, what, name = ""] of source.matchAll(
    /^export (?:async )?(const|function|class|interface|type) (\w+)/gm,
  )) {
    const isType = what === "interface" || what === "type";
    found.push({ module, name, isType, file: path, doc: await docOf(path, name) });
  }
  return found;
}

/** The examples of a module's exports and of their members. */
export async function examplesOf(module: string): Promise<Example[]> {
  const examples: Example[] = [];
  for (const { name, file, doc } of await exportsOf(module)) {
    examples.push(...examplesIn(doc).map((code) => ({ module, of: name, code })));
    for (const { name: member, doc } of await membersOf(file, name)) {
      examples.push(...examplesIn(doc).map((code) => ({ module, of: `${name}.${member}`, code })));
    }
  }
  return examples;
}

const examplesIn = (doc: string): string[] =>
  doc
    .split(/^@example ?/m)
    .slice(1)
    .map((text) => text.replace(/^@\w+[\s\S]*/m, "").trim());

async function docOf(file: string, name: string): Promise<string> {
  const source = await readFile(file, "utf8");
  for (const [, comment = "", , declared] of source.matchAll(DOCUMENTED)) if (declared === name) return plain(comment);
  return "";
}

/** The documented members of an interface or a class. */
async function membersOf(file: string, name: string): Promise<{ name: string; doc: string }[]> {
  const source = await readFile(file, "utf8");
  const start = new RegExp(`^export (?:interface|class) ${name}\\b.*\\{$`, "m").exec(source);
  if (!start) return [];
  const body = source.slice(start.index, source.indexOf("\n}", start.index)).slice(start[0].length);
  return [...body.matchAll(DOCUMENTED)].flatMap(([, comment = "", , , member]) =>
    member === undefined ? [] : [{ name: member, doc: plain(comment) }],
  );
}

const plain = (comment: string) =>
  comment
    .split("\n")
    .map((line) => line.replace(/^\s*\* ?/, ""))
    .join("\n")
    .trim();
