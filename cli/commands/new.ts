/** `new`: makes a project with one durable tool, or adds a tool to the project in this folder. */
import { basename, isAbsolute, relative, resolve } from "node:path";
import { parseArgs } from "node:util";
import { readArguments } from "../arguments.ts";
import { readProject, typed } from "../project.ts";
import { writeFiles } from "../scaffold/files.ts";
import { makeProject } from "../scaffold/new-project.ts";
import { addedTool, type ToolNames, toolNames } from "../scaffold/new-tool.ts";
import { sourceOf } from "../scaffold/source.ts";

export const usage = () => `Usage: ${typed(readProject(), "new", "FOLDER [options]")}
       ${typed(readProject(), "new", "--tool NAME")}

Makes a project in a new folder: a server with one durable tool and its test. Without a folder, adds a tool to the project
in this one.

  --tool NAME     the name of the tool, such as send_invoice
  --package SPEC  the version of this package to depend on, or a tarball of it (default: this one)
  --help          show this text
`;

interface Options {
  folder: string | undefined;
  tool: ToolNames | undefined;
  source: string | undefined;
}

/** @throws {Error} that names the wrong argument */
function parseOptions(args: string[]): Options {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: { tool: { type: "string" }, package: { type: "string" } },
  });
  const [folder, ...more] = positionals;
  if (more.length > 0) throw new Error("One folder, please.");
  if (folder === undefined && values.tool === undefined) throw new Error("Which folder?");
  return { folder, tool: values.tool === undefined ? undefined : toolNames(values.tool), source: values.package };
}

export async function run(args: string[]): Promise<void> {
  const { folder, tool, source } = readArguments(() => parseOptions(args));
  if (folder !== undefined) {
    await makeProject(resolve(folder), tool, () => sourceOf(source));
    console.log(`${basename(resolve(folder))} is there. Now:

  cd ${isAbsolute(folder) ? folder : relative(process.cwd(), resolve(folder))}
  npm install
  npm start
`);
  } else if (tool) {
    const files = await addedTool(process.cwd(), tool);
    await writeFiles(process.cwd(), files);
    for (const path of files.keys()) console.log(path);
  }
}
