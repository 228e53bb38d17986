/** Launches the processes of a stack. */
import { createHash, randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import { bundleEdge } from "../../cli/bundle/bundle.ts";
import { readConfiguration } from "../../cli/bundle/configuration.ts";
import { put } from "../../cli/bundle/put.ts";
import { filesIn } from "../../cli/launcher/data-directory.ts";
import { spawnEdge } from "../../cli/launcher/local-edge.ts";
import { EDGE_ENVIRONMENT } from "../../cli/launcher/stack.ts";
import { programPath } from "../../cli/package.ts";
import { configurationOf, edgeOf, readProject } from "../../cli/project.ts";
import { WORKER_ENVIRONMENT } from "../../worker/config.ts";
import { CLOCK_PATH } from "../time/movable-edge.ts";
import type { Time } from "../time/stack-time.ts";
import { type Program, run, waitForAnswer, watch } from "./program.ts";

type Variables = Record<string, string>;

/** The processes of a stack use no variable of a real deployment that the shell may hold: its addresses, keys and files. */
const UNSET_VARIABLES: Variables = Object.fromEntries(
  [...WORKER_ENVIRONMENT, ...EDGE_ENVIRONMENT].map((name) => [name, ""]),
);

/** The variables of a stack's workers, and the bindings of its edge. */
export function variablesOf(
  { env = {}, bindings = {} }: { env?: Variables; bindings?: Variables },
  { origin, resonateUrl, state }: { origin: string; resonateUrl: string; state: string },
) {
  const VIEW_KEY = bindings.VIEW_KEY ?? randomBytes(32).toString("hex");
  const FILES_URL = env.FILES_URL ?? bindings.FILES_URL ?? filesIn(state);
  const callbacks = { PUBLIC_URL: bindings.PUBLIC_URL ?? origin, VIEW_KEY };
  const address = { RESONATE_URL: resonateUrl, RESONATE_TOKEN: "", RESONATE_GROUP: "test", RESONATE_NAMESPACE: "" };
  const worker: Variables = {
    ...UNSET_VARIABLES,
    HEALTH_PORT: "0",
    LEASE_SECONDS: "3",
    STATE_CHECKS: "always",
    FILES_URL,
    ...callbacks,
    ...env,
    ...address,
  };
  const edge: Variables = {
    AUTH_MODE: "none",
    ALLOWED_HOSTS: "127.0.0.1,localhost",
    TASK_KEY: randomBytes(32).toString("hex"),
    VIEW_KEY,
    FILES_URL,
    // Calls of a test wait for their jobs.
    WAIT_SECONDS: "45",
    ...bindings,
    ...address,
  };
  return { callbacks, worker, edge };
}

export async function launchResonate(url: string, state: string, time: Time): Promise<Program> {
  const { imports, env } = time.movable("resonate");
  const args = ["--port", new URL(url).port, "--data", state];
  const server = run(programPath("server/node/process"), {
    args,
    env: { ...UNSET_VARIABLES, ...env, RESONATE_LOCAL_TOKEN: "" },
    imports,
  });
  await waitForAnswer(`${url}/ready`, server);
  return server;
}

interface EdgeOptions {
  /** The edge's entry, as a path from `root`; undefined for the project's own. */
  entry: string | undefined;
  root: string;
  port: number;
  /** The folder in which the edge's objects keep their state. */
  data: string;
  bindings: Variables;
  time: Time;
}

export async function launchEdge({ entry, root, port, data, bindings, time }: EdgeOptions): Promise<Program> {
  const bundle = await bundleEdge(await movableEntry(entry, root), root);
  const { process, ports } = await spawnEdge(bundle, { port, data, bindings });
  const edge = watch(process);
  await ports;
  await setEdgeTime(port, time.ahead);
  return edge;
}

/** Sets by how many milliseconds the time of the edge at this port is ahead. */
export async function setEdgeTime(port: number, ahead: number): Promise<void> {
  await fetch(`http://127.0.0.1:${port}${CLOCK_PATH}`, { method: "POST", body: `${ahead}` }).catch((error) => {
    // A killed edge gets the time when it starts again.
    if (!(error instanceof TypeError)) throw error;
  });
}

/** Writes an entry for the edge with a time that the test moves; returns its path from the project's folder. */
async function movableEntry(entry: string | undefined, root: string): Promise<string> {
  const path = resolve(root, entry ?? (existsSync(join(root, "edge.ts")) ? "edge.ts" : await sourceOf(root)));
  const text = `import { movable } from ${JSON.stringify(programPath("testing/time/movable-edge"))};
import edge from ${JSON.stringify(path)};
export * from ${JSON.stringify(path)};
export default movable(edge);
`;
  const name = `.build/test-edge-${createHash("sha256").update(text).digest("hex").slice(0, 8)}.ts`;
  await put(root, name, text);
  return name;
}

async function sourceOf(root: string): Promise<string> {
  const project = readProject(root);
  return edgeOf(project, await readConfiguration(configurationOf(project)));
}
