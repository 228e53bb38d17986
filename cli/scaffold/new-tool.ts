/** Adds a tool to a project: two files and a test, and two list entries. */
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { WrongArguments } from "../arguments.ts";
import { mapFiles, type ScaffoldFiles, template } from "./files.ts";

/** The names of a tool in its definition, in files and in code. */
export interface ToolNames {
  /** `send_invoice` */
  tool: string;
  /** `send-invoice` */
  file: string;
  /** `sendInvoice` */
  code: string;
  /** `Send invoice` */
  title: string;
}

/** @throws {WrongArguments} for an invalid name */
export function toolNames(name: string): ToolNames {
  if (!/^[a-z][a-z0-9]*([_-][a-z0-9]+)*$/.test(name) || name.length > 60) {
    throw new WrongArguments(
      `A tool's name is words of lower-case letters and digits, such as send_invoice, not "${name}".`,
    );
  }
  const words = name.split(/[_-]/);
  const [first = "", ...others] = words;
  const camel = first + others.map(capital).join("");
  return {
    tool: words.join("_"),
    file: words.join("-"),
    // A single word could be a keyword.
    code: others.length === 0 ? `${camel}Tool` : camel,
    title: capital(words.join(" ")),
  };
}

export async function toolFiles({ tool, file, code, title }: ToolNames): Promise<ScaffoldFiles> {
  const files = mapFiles(await template("tool"), (text) =>
    text
      .replaceAll("example_tool", tool)
      .replaceAll("example-tool", file)
      .replaceAll("exampleTool", code)
      .replaceAll("Example tool", title),
  );
  return new Map([...files].map(([path, text]) => [`tools/${file}/${path}`, text]));
}

const LIST_PATHS = { tools: "tools/index.ts", runs: "tools/runs.ts" } as const;

/** The files to write to add a tool to a project: its own and the changed lists. @throws {Error} if it cannot be added */
export async function filesWithTool(root: string, names: ToolNames): Promise<ScaffoldFiles> {
  const { file, code } = names;
  if (existsSync(join(root, "tools", file))) throw new Error(`tools/${file} is there already.`);
  const files = await toolFiles(names);
  for (const [list, path] of Object.entries(LIST_PATHS)) {
    const text = await readFile(join(root, path), "utf8").catch(() => undefined);
    if (text === undefined) throw new Error(`There is no ${path} here. Run this in the folder of your server.`);
    const end = list === "runs" ? "Run" : "";
    const from = `./${file}/${file}${list === "runs" ? ".run" : ""}.ts`;
    files.set(path, withEntry(text, list, `${code}${end}`, from, path));
  }
  return files;
}

/** Adds an import and an entry to the text of a list's module. */
function withEntry(text: string, list: string, name: string, from: string, path: string): string {
  const entries = new RegExp(`(export const ${list}\\b[^=]*=\\s*\\[)([^\\]]*)\\]`);
  const match = entries.exec(text);
  if (!match) throw new Error(`${path} has no \`export const ${list} = [ … ]\` to add to.`);
  const before = (match[2] ?? "").replace(/,?\s*$/, "");
  const isLong = before.includes("\n");
  const newEntries = before.trim() === "" ? name : isLong ? `${before},\n  ${name},\n` : `${before}, ${name}`;
  const module = text.replace(entries, (_all, open: string) => `${open}${newEntries}]`);
  const line = `import { ${name} } from "${from}";\n`;
  const last = [...module.matchAll(/^import\b[\s\S]*?;\n/gm)].at(-1);
  const at = last ? last.index + last[0].length : 0;
  return module.slice(0, at) + line + module.slice(at);
}

const capital = (text: string) => text.charAt(0).toUpperCase() + text.slice(1);
