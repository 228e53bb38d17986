import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { LocalService } from "../core/author/index.ts";

/** The project in the working directory, which the commands serve. */
export interface Project {
  /** The folder, absolute. */
  readonly root: string;
  /** The name in its `package.json`, without a scope. */
  readonly name: string;
  /** The npm scripts of its `package.json`. */
  readonly scripts: Readonly<Record<string, string>>;
  /** The settings under `durable-mcp-edge` in its `package.json`: paths relative to the folder. */
  readonly settings: {
    readonly edge?: string;
    readonly worker?: string;
    readonly local?: string;
    readonly wrapped?: string;
  };
}

const CONFIGURATION_PATHS = ["wrangler.toml", "wrangler.jsonc", "wrangler.json"];
const EDGE_PATHS = ["functions/index.ts", "edge/index.ts"];
const WORKER_PATHS = ["worker/main.ts", "worker.ts"];
const LOCAL_SERVICES_PATH = "tools/local.ts";

/** Reads the project in a folder. A project without a `package.json` has a default name and no scripts. */
export function readProject(root = process.cwd()): Project {
  const file = join(root, "package.json");
  const json = existsSync(file) ? JSON.parse(readFileSync(file, "utf8")) : {};
  const name = String(json.name ?? "durable-mcp-edge").replace(/^@[^/]*\//, "");
  return { root, name, scripts: json.scripts ?? {}, settings: json["durable-mcp-edge"] ?? {} };
}

/** The project's wrangler configuration. @throws {Error} if there is none */
export function configurationOf({ root }: Project): string {
  const path = CONFIGURATION_PATHS.find((name) => existsSync(join(root, name)));
  if (path !== undefined) return join(root, path);
  throw new Error(`${root} has no wrangler.toml. Run this in the folder of your server.`);
}

/**
 * The source of the project's edge: `main` of its wrangler configuration, unless that is what the build command makes.
 *
 * @throws {Error} that lists the paths searched, if there is none
 */
export function edgeOf(project: Project, { main, no_bundle }: { main?: string; no_bundle?: boolean }): string {
  if (!no_bundle && main !== undefined) return main;
  return programOf(project, "edge", EDGE_PATHS, "is the edge");
}

/** The project's worker program. @throws {Error} that lists the paths searched, if there is none */
export const workerOf = (project: Project): string => programOf(project, "worker", WORKER_PATHS, "runs the worker");

/** The program that a setting names, or the first of the default paths that exists; `role` says what it does. */
function programOf({ root, settings }: Project, key: "edge" | "worker", defaultPaths: string[], role: string): string {
  const setting = settings[key];
  const paths = setting === undefined ? defaultPaths : [setting];
  const path = paths.find((name) => existsSync(join(root, name)));
  if (path !== undefined) return join(root, path);
  const hint = `"durable-mcp-edge": { "${key}": "…" } in package.json names another path`;
  throw new Error(`${root} has no ${paths.join(" and no ")}, which ${role} (${hint}).`);
}

/** The project's services for local runs. @throws {Error} if the module that lists them is missing or lists none */
export async function localServices({ root, settings }: Project): Promise<readonly LocalService[]> {
  const path = join(root, settings.local ?? LOCAL_SERVICES_PATH);
  if (!existsSync(path)) {
    if (settings.local === undefined) return [];
    throw new Error(`${path}, which package.json names under "durable-mcp-edge", does not exist.`);
  }
  const { default: services } = await import(pathToFileURL(path).href);
  if (!Array.isArray(services)) throw new Error(`${path} exports no list of services by default.`);
  return services;
}

/**
 * A command as a user of the project types it: through the npm script that runs it, or else through `npx`.
 *
 * `commandLine(project, "doctor", "--url URL")` is `npm run doctor -- --url URL` if the project has such a script.
 */
export function commandLine({ scripts }: Pick<Project, "scripts">, command: string, args = ""): string {
  const invocation = new RegExp(`(durable-mcp-edge|cli/main\\.[jt]s) ${command}$`);
  const script = Object.keys(scripts).find((name) => invocation.test(scripts[name] ?? ""));
  const suffix = args === "" ? "" : ` ${args}`;
  if (script === undefined) return `npx durable-mcp-edge ${command}${suffix}`;
  return `npm ${script === "start" ? "" : "run "}${script}${suffix && ` --${suffix}`}`;
}
