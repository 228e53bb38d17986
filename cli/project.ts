import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** The project that the commands serve: the folder they are run in. */
export interface Project {
  /** The folder, absolute. */
  readonly root: string;
  /** As its `package.json` names it, without a scope. */
  readonly name: string;
  /** The npm scripts of its `package.json`. */
  readonly scripts: Readonly<Record<string, string>>;
  /** What its `package.json` says under `durable-mcp-edge`: paths from the folder. */
  readonly settings: { readonly worker?: string; readonly local?: string; readonly wrapped?: string };
}

const CONFIGURATIONS = ["wrangler.toml", "wrangler.jsonc", "wrangler.json"];
const WORKERS = ["worker/main.ts", "worker.ts"];
const LOCAL = "tools/local.ts";

/** Reads the project in a folder; one without a `package.json` has no name of its own and no scripts. */
export function readProject(root = process.cwd()): Project {
  const file = join(root, "package.json");
  const json = existsSync(file) ? JSON.parse(readFileSync(file, "utf8")) : {};
  const name = String(json.name ?? "durable-mcp-edge").replace(/^@[^/]*\//, "");
  return { root, name, scripts: json.scripts ?? {}, settings: json["durable-mcp-edge"] ?? {} };
}

/**
 * Its wrangler configuration, whose `main` is the edge's entry.
 *
 * @throws {Error} saying that there is none
 */
export function configurationOf({ root }: Project): string {
  const found = CONFIGURATIONS.find((name) => existsSync(join(root, name)));
  if (found !== undefined) return join(root, found);
  throw new Error(`${root} has no wrangler.toml. Run this in the folder of your server.`);
}

/**
 * The program that runs its worker.
 *
 * @throws {Error} saying where it was looked for
 */
export function workerOf({ root, settings }: Project): string {
  const places = settings.worker === undefined ? WORKERS : [settings.worker];
  const found = places.find((name) => existsSync(join(root, name)));
  if (found !== undefined) return join(root, found);
  const key = '"durable-mcp-edge": { "worker": "…" } in package.json names another place';
  throw new Error(`${root} has no ${places.join(" and no ")}, which runs the worker (${key}).`);
}

/** The module that lists its services for local runs, or undefined when it has none. */
export function localModuleOf({ root, settings }: Project): string | undefined {
  const path = join(root, settings.local ?? LOCAL);
  if (existsSync(path)) return path;
  if (settings.local === undefined) return undefined;
  throw new Error(`${path}, which package.json names under "durable-mcp-edge", does not exist.`);
}

/**
 * A command as a user of the project types it: by the npm script that runs it, or else by `npx`.
 *
 * `typed(project, "doctor", "--url URL")` is `npm run doctor -- --url URL` where there is such a script.
 */
export function typed({ scripts }: Pick<Project, "scripts">, command: string, args = ""): string {
  const runs = new RegExp(`(durable-mcp-edge|cli/main\\.[jt]s) ${command}$`);
  const script = Object.keys(scripts).find((name) => runs.test(scripts[name] ?? ""));
  const behind = args === "" ? "" : ` ${args}`;
  if (script === undefined) return `npx durable-mcp-edge ${command}${behind}`;
  return `npm ${script === "start" ? "" : "run "}${script}${behind && ` --${behind}`}`;
}
