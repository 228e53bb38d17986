import { randomUUID } from "node:crypto";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join, relative, resolve } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { type Bundle, bundleEdge, EDGE_MODULE } from "../bundle/bundle.ts";
import { resolveModule } from "../package.ts";
import { type Child, startChild } from "../process/child.ts";

/** The default grace period: short, because a request that awaits a job could take minutes. */
const DEFAULT_GRACE_MS = 1_000;

/** How many characters are kept of the beginning, and of the end, of workerd's output. */
const OUTPUT_CHARACTERS = 2_000;

interface EdgeOptions {
  /** Port on 127.0.0.1; 0 chooses a free one. */
  port: number;
  /** Text bindings that override those in `wrangler.toml`. An empty string removes a binding, even a Durable Object's. */
  bindings: Readonly<Record<string, string | undefined>>;
  /** The folder for the storage of the Durable Objects. Default: a temporary one, which is removed when the edge ends. */
  data?: string | undefined;
  /** The bindings of further isolates of the edge, each on a free port. They share its Durable Objects. */
  otherIsolates?: readonly Readonly<Record<string, string | undefined>>[] | undefined;
  /** Port on 127.0.0.1 for the inspector of the isolate. Default: no inspector. */
  inspectorPort?: number | undefined;
  /** How long requests in flight may continue after SIGTERM, in milliseconds. Default: a second. */
  grace?: number;
}

export interface EdgeProcess extends AsyncDisposable {
  readonly url: string;
  readonly port: number;
  /** The addresses of the further isolates. */
  readonly otherUrls: readonly string[];
  readonly process: Child;
}

/** Serves the project's edge, or the one of another `entry` point: see {@link serveBundle}. */
export const startEdge = async ({ entry, ...options }: EdgeOptions & { entry?: string | undefined }) =>
  serveBundle(await bundleEdge(entry), options);

/**
 * Serves an edge by workerd and waits until it listens. Disposing of the result ends the process.
 *
 * @throws {Error} that names the port if it is taken, or else with workerd's output
 */
export async function serveBundle(bundle: Bundle, options: EdgeOptions): Promise<EdgeProcess> {
  const { process, ports, cleanup } = await spawnEdge(bundle, options);
  const [port = 0, ...others] = await ports;
  return {
    url: `http://127.0.0.1:${port}`,
    port,
    otherUrls: others.map((port) => `http://127.0.0.1:${port}`),
    process,
    async [Symbol.asyncDispose]() {
      process.stop();
      await cleanup;
    },
  };
}

/**
 * Starts workerd on a bundle. `ports` resolves with the ports of all isolates once workerd listens, and rejects if it ends before
 * that. `cleanup` resolves when workerd has ended and its temporary folder is gone.
 */
export async function spawnEdge(
  bundle: Bundle,
  { port, data, bindings, otherIsolates = [], inspectorPort, grace = DEFAULT_GRACE_MS }: EdgeOptions,
) {
  const isolates = [bindings, ...otherIsolates].map((one) =>
    Object.entries({ ...bundle.vars, ...one }).filter(([, value]) => value),
  );
  // With a Resonate server elsewhere, the account's own server and its runners are left out.
  const isOff = (name: string) =>
    bindings[name] === "" || (["RESONATE", "RUNNER"].includes(name) && bindings.RESONATE_URL);
  const { FILES_URL: url } = bindings;
  const files = url && !/^https?:/.test(url) ? folderPath(url) : undefined;
  if (files !== undefined) await mkdir(files, { recursive: true });
  // Not beside the bundle, whose folder may be read-only.
  const config = join(tmpdir(), `durable-mcp-edge-${randomUUID()}.capnp`);
  const objects = data === undefined ? await mkdtemp(join(tmpdir(), "durable-mcp-edge-objects-")) : resolve(data);
  await mkdir(objects, { recursive: true });
  await writeFile(
    config,
    workerdConfig(
      {
        ...bundle,
        objects: Object.fromEntries(Object.entries(bundle.objects).filter(([name]) => !isOff(name))),
      },
      isolates.map((values) => values.map(([name]) => name)),
      objects,
      files,
    ),
  );
  const addresses = isolates.flatMap((_, i) => ["--socket-addr", `http${i}=127.0.0.1:${i === 0 ? port : 0}`]);
  const args = ["serve", config, ...addresses, "--control-fd", "3"];
  if (inspectorPort !== undefined) args.push("--inspector-addr", `127.0.0.1:${inspectorPort}`);
  const env = Object.fromEntries(
    isolates.flatMap((values, i) => values.map(([name, value]) => [`${i}_${name}`, value])),
  );
  const process = startChild(workerd(), args, { env, grace });
  const cleanup = process.exited.then(() =>
    data === undefined ? rm(objects, { recursive: true, force: true }) : undefined,
  );
  const ports = listeningPorts(process, port, isolates.length).finally(() => rm(config, { force: true }));
  ports.catch(() => {}); // A caller may watch the process instead.
  return { process, ports, cleanup };
}

/** The path of the executable of workerd, which is an optional dependency of this package. */
const workerd = (): string => createRequire(import.meta.url)(resolveModule("workerd", process.cwd())).default;

async function listeningPorts(process: Child, firstPort: number, count: number): Promise<number[]> {
  let output = "";
  process.stderr.setEncoding("utf8").on("data", (text: string) => {
    output += text;
    if (output.length > 2 * OUTPUT_CHARACTERS)
      output = output.slice(0, OUTPUT_CHARACTERS) + output.slice(-OUTPUT_CHARACTERS);
  });
  const failure = process.exited.then(() => {
    if (output.includes("Address already in use")) throw new Error(`Port ${firstPort} is already in use.`);
    throw new Error(refusalIn(output) ?? `workerd ended at start:\n${output}`);
  });
  const result = new Promise<number[]>((resolve) => {
    const ports: number[] = [];
    createInterface({ input: process.control }).on("line", (line) => {
      const message: { event: string; socket: string; port: number } = JSON.parse(line);
      if (message.event === "listen") ports[Number(message.socket.slice("http".length))] = message.port;
      if (ports.filter(Boolean).length === count) resolve(ports);
    });
  });
  return Promise.race([result, failure]);
}

/** The message of an error with which the edge refused to start, from workerd's output, without its stack. */
export const refusalIn = (output: string): string | undefined => /Uncaught Error: (.+?)\n\s+at /s.exec(output)?.[1];

/** The values of bindings come from workerd's environment, so that no secret is written to disk or needs escaping. */
function workerdConfig(bundle: Bundle, isolates: string[][], objectsFolder: string, filesFolder?: string): string {
  const { main, modules, data = {}, v8Flags = [], compatibilityDate, compatibilityFlags, objects, assets } = bundle;
  const folders = Object.entries({ ...bundle.folders, ...(assets && { [assets.binding]: assets.directory }) });
  // workerd reads an embedded file only by a path relative to its configuration.
  const embed = (path: string) => `embed ${quote(relative(tmpdir(), resolve(bundle.dir, path)))}`;
  const flags = compatibilityFlags.map(quote).join(", ");
  const classes = [...new Set(Object.values(objects))].map(quote);
  const namespaces = classes.map((name) => `(className = ${name}, uniqueKey = ${name}, enableSql = true)`);
  const bindingsOf = (names: string[], i: number) => [
    ...names.map((name) => `(name = ${quote(name)}, fromEnvironment = ${quote(`${i}_${name}`)})`),
    ...Object.entries(objects).map(([name, className]) => {
      const at = i === 0 ? quote(className) : `(className = ${quote(className)}, serviceName = "edge0")`;
      return `(name = ${quote(name)}, durableObjectNamespace = ${at})`;
    }),
    ...Object.entries(data).map(([name, path]) => `(name = ${quote(name)}, json = ${embed(path)})`),
    ...folders.map(([name]) => `(name = ${quote(name)}, service = ${quote(`folder ${name}`)})`),
    `(name = "CALLBACKS", service = "public")`,
    ...(filesFolder === undefined ? [] : [`(name = "FILES_FOLDER", service = "files")`]),
  ];
  const disks = [
    ...folders.map(([name, path]) => `(name = ${quote(`folder ${name}`)}, disk = ${quote(path)}),`),
    ...(filesFolder === undefined ? [] : [`(name = "files", disk = (path = ${quote(filesFolder)}, writable = true)),`]),
  ].join("\n    ");
  const scripts = [[EDGE_MODULE, main] as const, ...modules.map((path) => [path, path] as const)].map(
    ([name, path]) => `(name = ${quote(name)}, esModule = ${embed(path)})`,
  );
  const workers = isolates.map(
    (names, i) => `const edge${i} :Workerd.Worker = (
  modules = [${scripts.join(", ")}],
  compatibilityDate = ${quote(compatibilityDate)},
  compatibilityFlags = [${flags}],
  durableObjectNamespaces = [${i === 0 ? namespaces.join(", ") : ""}],
  durableObjectStorage = (localDisk = "data"),
  bindings = [${bindingsOf(names, i).join(", ")}],
);`,
  );
  const each = (text: (i: number) => string) => isolates.map((_, i) => text(i)).join("\n    ");
  // Web hooks go only to public addresses, even if a host name resolves to a private one.
  // Resonate may be on loopback or in a private network, to which workerd refuses to connect by default.
  return `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  v8Flags = [${v8Flags.map(quote).join(", ")}],
  services = [
    ${each((i) => `(name = "edge${i}", worker = .edge${i}),`)}
    ${disks}
    (name = "data", disk = (path = ${quote(objectsFolder)}, writable = true)),
    (name = "internet", network = (allow = ["public", "private"], tlsOptions = (trustBrowserCas = true))),
    (name = "public", network = (allow = ["public"], tlsOptions = (trustBrowserCas = true))),
  ],
  sockets = [
    ${each((i) => `(name = "http${i}", http = (), service = "edge${i}"),`)}
  ],
);
${workers.join("\n")}
`;
}

/** The folder of a `FILES_URL` that is not a bucket's address. */
const folderPath = (url: string): string => (url.startsWith("file:") ? fileURLToPath(url) : resolve(url));

const quote = (text: string) => JSON.stringify(text);
