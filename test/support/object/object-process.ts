/**
 * The Resonate object in workerd, as a program with the options of the Node host and the same log line when it is ready:
 *
 *   node test/support/object/object-process.ts [--port 0] [--data DIR | --memory] [--inspector-port PORT] [--worker FILE]
 */
import { createHash, randomUUID } from "node:crypto";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { parseArgs } from "node:util";
import { buildModules, copyModules, put } from "../../../cli/build/modules.ts";
import { resolveModule } from "../../../cli/package.ts";
import { startChild } from "../../../cli/process/child.ts";

const wrangler = createRequire(resolveModule("wrangler/package.json", process.cwd()));

const { values } = parseArgs({
  options: {
    port: { type: "string", default: "0" },
    data: { type: "string" },
    memory: { type: "boolean", default: false },
    "inspector-port": { type: "string" },
    worker: { type: "string", default: join(import.meta.dirname, "object-worker.ts") },
  },
});

// workerd has no SQL for an object in memory, so state that is not to be kept is also on disk until the program ends.
const dir = values.data === undefined ? mkdtempSync(join(tmpdir(), "resonate-object-")) : resolve(values.data);
mkdirSync(dir, { recursive: true });
const build = resolve(".build");
mkdirSync(build, { recursive: true });
const { folder, modules } = await bundled();
const config = join(folder, `${randomUUID()}.capnp`);
writeFileSync(config, configuration(dir));
const args = ["serve", config, "--socket-addr", `http=127.0.0.1:${values.port}`, "--control-fd", "3"];
if (values["inspector-port"]) args.push("--inspector-addr", `127.0.0.1:${values["inspector-port"]}`);
const workerd = startChild(wrangler("workerd").default, args, { env: {}, grace: 1_000 });
workerd.stderr.on("data", (text) => process.stderr.write(text));
workerd.stdout.on("data", (text) => process.stdout.write(text));
createInterface({ input: workerd.control }).on("line", (line) => {
  const { event, port } = JSON.parse(line);
  if (event !== "listen") return;
  rmSync(config);
  console.log(
    JSON.stringify({
      msg: "ready",
      url: `http://127.0.0.1:${port}`,
      file: values.data ?? ":memory:",
      pid: workerd.pid,
    }),
  );
});
for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => workerd.stop());
const { exitCode } = await workerd.exited;
if (values.data === undefined) rmSync(dir, { recursive: true, force: true });
process.exit(exitCode ?? 0);

/** The folder of the Worker, and the paths of its modules in that folder. */
async function bundled(): Promise<{ folder: string; modules: string[] }> {
  const esbuild: typeof import("esbuild") = wrangler("esbuild");
  const { outputFiles } = await esbuild.build({
    entryPoints: [values.worker],
    bundle: true,
    write: false,
    format: "esm",
    target: "es2024",
    conditions: ["workerd", "worker", "browser"],
    external: ["./modules/*.js"],
  });
  const code = outputFiles[0]?.text ?? "";
  const sources = await buildModules(process.cwd());
  if (sources.length === 0) throw new Error("This runs in the project's own folder.");
  const built = join(build, `object-${createHash("sha256").update(code).digest("hex").slice(0, 16)}`);
  const modules = await copyModules(process.cwd(), built);
  await put(built, "index.js", code);
  return { folder: built, modules };
}

function configuration(dir: string): string {
  const { compatibility_date: date } = settings();
  return `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [
    (name = "main", worker = .main),
    (name = "disk", disk = (path = ${JSON.stringify(dir)}, writable = true)),
  ],
  sockets = [(name = "http", http = (), service = "main")],
);
const main :Workerd.Worker = (
  modules = [
    (name = "index.js", esModule = embed "index.js"),
    ${modules.map((path) => `(name = "${path}", esModule = embed "${path}"),`).join("\n    ")}
  ],
  compatibilityDate = ${JSON.stringify(date)},
  durableObjectNamespaces = [(className = "ResonateObject", uniqueKey = "ResonateObject", enableSql = true)],
  durableObjectStorage = (localDisk = "disk"),
  bindings = [(name = "RESONATE", durableObjectNamespace = "ResonateObject")],
);
`;
}

/** The compatibility date of the product's own configuration. */
function settings(): { compatibility_date: string } {
  const [, date = ""] = /^compatibility_date = "(.*)"$/m.exec(readFileSync("wrangler.toml", "utf8")) ?? [];
  return { compatibility_date: date };
}
