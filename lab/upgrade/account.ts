/**
 * Runs an earlier version of the code and this one in one account, as when the platform replaces parts at different times:
 *
 *   npm run upgrade:account -- FOLDER   # a checkout of the earlier version, installed
 *
 * The parts change from the earlier version to this one in different orders, and at the end all of them are rolled back and
 * brought forward again. In each combination jobs start and end, and jobs that began in the previous combination end, too.
 */
import { existsSync } from "node:fs";
import { cp, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { type Bundle, bundleEdge } from "../../cli/bundle/bundle.ts";
import { resolveModule } from "../../cli/package.ts";
import { startChild } from "../../cli/process/child.ts";
import { currentClient, type McpClient } from "../../test/support/clients.ts";
import { waitForAnswer, watch } from "../../testing/simulation/program.ts";
import { freePort } from "../../testing/stack/port.ts";
import { startSampleArchive } from "../../tools/weather/sample-archive/server.ts";

type Version = "earlier" | "this";
/** The version of each part: edge, listener, Resonate object, runner. */
type Parts = readonly [edge: Version, listener: Version, resonate: Version, runner: Version];

const [e, t] = ["earlier", "this"] as const;
const ORDERS: readonly Parts[] = [
  [e, e, e, e],
  // The edge comes first, the objects one after the other.
  [t, e, e, e],
  [t, t, e, e],
  [t, t, e, t],
  // The objects come first.
  [e, e, t, e],
  [e, e, t, t],
  [t, t, t, e],
  [e, t, t, t],
  [t, t, t, t],
  // Rolled back after this version has migrated the tables, and forward again.
  [e, e, e, e],
  [t, t, t, t],
];

const OBJECTS = [
  ["LISTENER", "Listener"],
  ["RESONATE", "ResonateObject"],
  ["RUNNER", "RunnerObject"],
  ["CALLER", "CallerObject"],
] as const;

const [folder] = process.argv.slice(2);
if (folder === undefined) throw new Error("Which checkout of the earlier version?");
const bundles = { earlier: await bundleOf(resolve(folder)), this: await bundleEdge() };
const archive = await startSampleArchive();
const work = await mkdtemp(join(tmpdir(), "arrival-"));
const port = await freePort();
try {
  await mkdir(join(work, "data"));
  for (const version of [e, t]) await cp(bundles[version].dir, join(work, version), { recursive: true });
  let left: string[] = [];
  let isWrong = false;
  for (const [n, parts] of ORDERS.entries()) {
    const outcome = await during(parts, n, left);
    console.log(`edge, listener, Resonate, runner: ${parts.join(", ")}: ${outcome.says}`);
    left = outcome.left;
    isWrong ||= outcome.isWrong;
  }
  process.exitCode = isWrong ? 1 : 0;
} finally {
  await archive[Symbol.asyncDispose]();
  await rm(work, { recursive: true });
}

/** Bundles the edge of a checkout with the checkout's own code. */
async function bundleOf(root: string): Promise<Bundle> {
  // The later path first: `1c007cb` has the other.
  const path = ["cli/bundle/bundle.ts", "infra/launcher/bundle.ts"].find((each) => existsSync(join(root, each)));
  const { bundleEdge } = await import(pathToFileURL(join(root, path ?? "")).href);
  const here = process.cwd();
  process.chdir(root);
  return await bundleEdge().finally(() => process.chdir(here));
}

/** Serves these parts until their jobs and the `earlier` ones have ended. Starts jobs to leave, and kills the process. */
async function during(parts: Parts, n: number, earlier: readonly string[]) {
  const config = join(work, "config.capnp");
  await writeFile(config, configuration(parts));
  const wrangler = createRequire(resolveModule("wrangler/package.json", process.cwd()));
  const args = ["serve", config, "--socket-addr", `http=127.0.0.1:${port}`, "--control-fd", "3"];
  const workerd = watch(startChild(wrangler("workerd").default, args, { env: {}, grace: 1_000 }));
  try {
    await waitForAnswer(`http://127.0.0.1:${port}/ready`, workerd);
    await using client = await currentClient.connect(`http://127.0.0.1:${port}/mcp`);
    const place = { latitude: 47.6 + n / 100, longitude: -122.3 };
    const started = await Promise.all([
      nameOf(client, "start_gathering", { ...place, year: 2012, month: 2 }),
      nameOf(client, "set_timer", { timer_name: `short ${n}`, seconds: 1 }),
      nameOf(client, "weather_range", { ...place, from: "2013-01", to: "2013-12", confirm: true }),
    ]);
    const jobs = [...earlier, ...started];
    const unended = await withoutResult(client, jobs);
    archive.control.inject({ fault: { kind: "status", status: 503, retry_after: "3" }, times: 1 });
    const left = await Promise.all([
      nameOf(client, "set_timer", { timer_name: `long ${n}`, seconds: 6 }),
      nameOf(client, "start_gathering", { ...place, year: 2014, month: 7 }),
    ]);
    const says = `${jobs.length - unended.length} of ${jobs.length} jobs ended, ${earlier.length} of them begun before`;
    return { says: [says, ...unended].join("; without a result: "), left, isWrong: unended.length > 0 };
  } finally {
    workerd.signal("SIGKILL");
    await workerd.exited;
    archive.control.clear();
  }
}

async function nameOf(client: McpClient, tool: string, args: object): Promise<string> {
  const { content, text } = await client.callTool(tool, args);
  return content?.job_name ?? Promise.reject(new Error(`${tool}: ${text}`));
}

/** The jobs without a result after a minute. */
async function withoutResult(client: McpClient, jobs: string[]): Promise<string[]> {
  const { content } = await client.callTool("await_result", { job_names: jobs, timeout_seconds: 60 });
  return jobs.filter((job) => !(job in content.results));
}

/** Both versions as services of one workerd with one folder, so that an object's next version finds its storage. */
function configuration(parts: Parts): string {
  const [edge, ...others] = parts;
  // `1c007cb` has no callers' objects, which then are those of this version.
  const objects = [...others, "CALLER" in bundles[edge].objects ? edge : t];
  const quote = (text: string) => JSON.stringify(text);
  const worker = (version: Version) => {
    const { main, modules, compatibilityDate } = bundles[version];
    const vars = { AUTH_MODE: "none", RATE_LIMIT: "0", WAIT_SECONDS: "30", WEATHER_API_URL: archive.url };
    const files = [["index.js", main], ...modules.map((path) => [path, path])].map(
      ([name = "", path = ""]) => `(name = ${quote(name)}, esModule = embed ${quote(`${version}/${path}`)})`,
    );
    const own = OBJECTS.filter((_, i) => objects[i] === version).map(
      ([, name]) => `(className = ${quote(name)}, uniqueKey = ${quote(name)}, enableSql = true)`,
    );
    const bound = OBJECTS.flatMap(([name, className], i) => {
      if (!(name in bundles[version].objects)) return [];
      const at = `(className = ${quote(className)}, serviceName = ${quote(objects[i] as Version)})`;
      return `(name = ${quote(name)}, durableObjectNamespace = ${objects[i] === version ? quote(className) : at})`;
    });
    const texts = Object.entries(vars).map(([name, text]) => `(name = ${quote(name)}, text = ${quote(text)})`);
    return `(
    modules = [${files.join(", ")}],
    compatibilityDate = ${quote(compatibilityDate)},
    durableObjectNamespaces = [${own.join(", ")}],
    durableObjectStorage = (localDisk = ${quote(`data of ${version}`)}),
    bindings = [${[...bound, ...texts, '(name = "ASSETS", service = "assets")'].join(", ")}],
  )`;
  };
  const disk = `disk = (path = ${quote(join(work, "data"))}, writable = true)`;
  return `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [
    (name = "earlier", worker = ${worker("earlier")}),
    (name = "this", worker = ${worker("this")}),
    (name = "data of earlier", ${disk}),
    (name = "data of this", ${disk}),
    (name = "assets", disk = ${quote(bundles.this.assets?.directory ?? work)}),
    (name = "internet", network = (allow = ["public", "private"], tlsOptions = (trustBrowserCas = true))),
  ],
  sockets = [(name = "http", http = (), service = ${quote(edge)})],
);
`;
}
