/** `new`: creates a project with one durable tool, or adds a tool to the project in this folder. */
import { basename, isAbsolute, relative, resolve } from "node:path";
import { parseArgs } from "node:util";
import { option, usageOf, WrongArguments } from "../arguments.ts";
import { writeFiles } from "../scaffold/files.ts";
import { createProject } from "../scaffold/new-project.ts";
import { filesWithTool, toolNames } from "../scaffold/new-tool.ts";
import { print } from "../terminal/print.ts";

const OPTIONS = {
  tool: option("NAME", "the name of the tool, such as send_invoice"),
  package: option("SPEC", "the version of this package to depend on, or a tarball of it (default: this one)"),
};

export const usage = usageOf(
  ["FOLDER [options]", "--tool NAME"],
  `Creates a project in a new folder: a server with one durable tool and its test. Without a folder, adds a tool to the project
in this one.`,
  OPTIONS,
);

export async function run(args: string[]): Promise<void> {
  const { values, positionals } = parseArgs({ args, allowPositionals: true, options: OPTIONS });
  const [folder, ...more] = positionals;
  if (more.length > 0) throw new WrongArguments("One folder, please.");
  if (folder === undefined && values.tool === undefined) throw new WrongArguments("Which folder?");
  const tool = values.tool === undefined ? undefined : toolNames(values.tool);
  if (folder !== undefined) {
    await createProject(resolve(folder), tool, values.package);
    print(`${basename(resolve(folder))} is there. Now:

  cd ${isAbsolute(folder) ? folder : relative(process.cwd(), resolve(folder))}
  npm install
  npm start
`);
  } else if (tool) {
    const files = await filesWithTool(process.cwd(), tool);
    await writeFiles(process.cwd(), files);
    for (const path of files.keys()) print(path);
  }
}
