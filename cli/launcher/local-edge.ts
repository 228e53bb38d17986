import { randomUUID } from "node:crypto";
import { rm, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { type Bundle, bundleEdge, EDGE_MODULE } from "../bundle/bundle.ts";
import { resolveModule } from "../package.ts";
import { type Child, startChild } from "../process/child.ts";

/** How long requests in flight may go on after SIGTERM, in milliseconds: one that awaits a job could take minutes. */
const GRACE = 1_000;

export interface LocalEdgeOptions {
  /** Port on 127.0.0.1; 0 takes a free one. */
  port: number;
  /** Text bindings that override those in `wrangler.toml`. An empty string removes a binding, also a Durable Object's. */
  bindings: Readonly<Record<string, string | undefined>>;
  /** The folder for the storage of the Durable Objects; without it they store in memory and have no SQL. */
  data?: string | undefined;
  /** The entry point to bundle instead of the edge's own. */
  entry?: string | undefined;
  /** Port on 127.0.0.1 for the inspector of the isolate; none unless given. */
  inspectorPort?: number | undefined;
}

/** An edge in its own workerd process. */
export interface EdgeProcess extends AsyncDisposable {
  readonly url: string;
  readonly port: number;
  readonly process: Child;
}

/**
 * Serves the edge by workerd and waits until it listens. Disposing of it ends the process.
 *
 * @throws {Error} naming the port when it is taken, and otherwise with what workerd printed
 */
export async function startEdge(options: LocalEdgeOptions): Promise<EdgeProcess> {
  const { process, listening } = await spawnEdge(await bundleEdge(options.entry), options);
  const port = await listening;
  return {
    url: `http://127.0.0.1:${port}`,
    port,
    process,
    async [Symbol.asyncDispose]() {
      process.stop();
      await process.exited;
    },
  };
}

/** Starts workerd on a bundle. `listening` resolves to the port once it listens, and rejects if it never does. */
export async function spawnEdge(
  bundle: Bundle,
  { port, data, bindings, inspectorPort, grace = GRACE }: Omit<LocalEdgeOptions, "entry"> & { grace?: number },
) {
  const values = Object.entries({ ...bundle.vars, ...bindings }).filter(([, value]) => value);
  // A server at RESONATE_URL replaces the account's own.
  const isOff = (name: string) =>
    bindings[name] === "" || (["RESONATE", "RUNNER"].includes(name) && bindings.RESONATE_URL);
  const config = join(bundle.dir, `${randomUUID()}.capnp`);
  await writeFile(
    config,
    workerdConfig(
      {
        ...bundle,
        objects: Object.fromEntries(Object.entries(bundle.objects).filter(([name]) => !isOff(name))),
      },
      values.map(([name]) => name),
      data,
    ),
  );
  const args = ["serve", config, "--socket-addr", `http=127.0.0.1:${port}`, "--control-fd", "3"];
  if (inspectorPort !== undefined) args.push("--inspector-addr", `127.0.0.1:${inspectorPort}`);
  const process = startChild(workerd(), args, { env: Object.fromEntries(values), grace });
  const listening = listeningPort(process, port).finally(() => rm(config, { force: true }));
  listening.catch(() => {}); // A caller may watch the process instead.
  return { process, listening };
}

/** The workerd executable that wrangler depends on. */
function workerd(): string {
  const wrangler = createRequire(resolveModule("wrangler/package.json", process.cwd()));
  return wrangler("workerd").default;
}

async function listeningPort(process: Child, wanted: number): Promise<number> {
  let printed = "";
  process.stderr.setEncoding("utf8").on("data", (text: string) => {
    printed = (printed + text).slice(-2_000);
  });
  const ended = process.exited.then(() => {
    const taken = printed.includes("Address already in use");
    throw new Error(taken ? `Port ${wanted} is already in use.` : `workerd ended at start:\n${printed}`);
  });
  const listening = new Promise<number>((resolve) => {
    createInterface({ input: process.control }).on("line", (line) => {
      const message: { event: string; port: number } = JSON.parse(line);
      if (message.event === "listen") resolve(message.port);
    });
  });
  return Promise.race([listening, ended]);
}

/** The values of bindings come from workerd's environment, so that no secret is written to disk. */
function workerdConfig(bundle: Bundle, bindings: string[], data: string | undefined): string {
  const { main, modules, compatibilityDate, compatibilityFlags, objects, assets } = bundle;
  const flags = compatibilityFlags.map(quote).join(", ");
  const fromEnvironment = bindings.map(quote).map((name) => `(name = ${name}, fromEnvironment = ${name})`);
  const classes = [...new Set(Object.values(objects))].map(quote);
  const namespaces = classes.map((name) => `(className = ${name}, uniqueKey = ${name}, enableSql = true)`);
  const bound = Object.entries(objects).map(
    ([name, className]) => `(name = ${quote(name)}, durableObjectNamespace = ${quote(className)})`,
  );
  if (assets) bound.push(`(name = ${quote(assets.binding)}, service = "assets")`);
  const files = assets ? `(name = "assets", disk = ${quote(assets.directory)}),` : "";
  const scripts = [[EDGE_MODULE, main] as const, ...modules.map((path) => [path, path] as const)].map(
    ([name, path]) => `(name = ${quote(name)}, esModule = embed ${quote(path)})`,
  );
  const disk = data === undefined ? "" : `(name = "data", disk = (path = ${quote(data)}, writable = true)),`;
  // Resonate may be on loopback or in a private network, to which workerd does not connect by default.
  return `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [
    (name = "edge", worker = .edge),
    ${files}
    ${disk}
    (name = "internet", network = (allow = ["public", "private"], tlsOptions = (trustBrowserCas = true))),
  ],
  sockets = [(name = "http", http = (), service = "edge")],
);
const edge :Workerd.Worker = (
  modules = [${scripts.join(", ")}],
  compatibilityDate = ${quote(compatibilityDate)},
  compatibilityFlags = [${flags}],
  durableObjectNamespaces = [${namespaces.join(", ")}],
  durableObjectStorage = ${data === undefined ? "(inMemory = void)" : '(localDisk = "data")'},
  bindings = [${[...fromEnvironment, ...bound].join(", ")}],
);
`;
}

const quote = (text: string) => JSON.stringify(text);
