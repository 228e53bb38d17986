/** The servers that a project wraps: what its list of durable functions has made known. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { type RegisteredServer, registeredServers } from "../../wrap/worker/registered-servers.ts";
import type { Project } from "../project.ts";

/** Beside `package.json`'s word for it. */
const RUNS = ["tools/runs.ts", "tools/runs.js"];

/** Loads what `worker.ts` loads, and runs nothing. */
export async function wrappedBy({ root, settings }: Project): Promise<readonly RegisteredServer[]> {
  const place = [...(settings.wrapped === undefined ? [] : [settings.wrapped]), ...RUNS]
    .map((path) => join(root, path))
    .find((path) => existsSync(path));
  if (place !== undefined) await import(pathToFileURL(place).href);
  return registeredServers();
}
