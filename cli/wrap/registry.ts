/** Finds the servers that a project wraps: its list of durable functions registers them. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { type RegisteredServer, registeredServers } from "../../wrap/worker/registered-servers.ts";
import type { Project } from "../project.ts";

/** The default paths of the list. */
const RUNS = ["tools/runs.ts", "tools/runs.js"];

/** Loads the list without running a worker. */
export async function wrappedBy({ root, settings }: Project): Promise<readonly RegisteredServer[]> {
  const path = [...(settings.wrapped === undefined ? [] : [settings.wrapped]), ...RUNS]
    .map((path) => join(root, path))
    .find((path) => existsSync(path));
  if (path !== undefined) await import(pathToFileURL(path).href);
  return registeredServers();
}
