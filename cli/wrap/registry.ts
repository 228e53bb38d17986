/** Finds the servers that a project wraps, which its list of durable functions registers. */
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { type RegisteredServer, registeredServers } from "../../wrap/worker/registered-servers.ts";
import type { Project } from "../project.ts";
import { FILES } from "./wrap-files.ts";

/** The default paths of the list of durable functions. */
const RUNS_PATHS = ["tools/runs.ts", "tools/runs.js"];

/** Loads the project's list of durable functions, without running a worker. */
export async function wrappedServers({ root, settings }: Project): Promise<readonly RegisteredServer[]> {
  if (settings.wrapped === FILES.options) {
    const options = JSON.parse(await readFile(join(root, FILES.options), "utf8"));
    return [{ options, snapshot: pathToFileURL(join(root, FILES.snapshot)) }];
  }
  const path = [...(settings.wrapped === undefined ? [] : [settings.wrapped]), ...RUNS_PATHS]
    .map((path) => join(root, path))
    .find((path) => existsSync(path));
  if (path !== undefined) await import(pathToFileURL(path).href);
  return registeredServers();
}
