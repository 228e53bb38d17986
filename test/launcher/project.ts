import { cp, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** A folder that is removed when it is disposed of. */
export interface Folder extends AsyncDisposable {
  readonly path: string;
}

export async function folder(): Promise<Folder> {
  const path = await mkdtemp(join(tmpdir(), "launcher-"));
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }) };
}

/** The parts of this checkout that make a project: its sources, its settings and the built pages. */
const SOURCES = "core features tools functions worker wrap server cli testing infra pages".split(" ");
const PARTS = [...SOURCES, ".build/pages", "package.json", "package-lock.json", "wrangler.toml"];

/** Copies this checkout into a separate project that can be edited. */
export async function copyProject(): Promise<Folder> {
  const project = await folder();
  for (const part of PARTS) await cp(part, join(project.path, part), { recursive: true });
  await symlink(join(process.cwd(), "node_modules"), join(project.path, "node_modules"));
  return project;
}

/** The smallest project: an edge, a worker and a service for local runs, none of them from this product. */
const FILES = {
  "package.json": JSON.stringify({ name: "@me/my-server", type: "module", "durable-mcp-edge": { local: "local.ts" } }),
  "wrangler.jsonc": `{
  "name": "my-server", "main": "edge.ts", "compatibility_date": "2026-11-17", // mine
  "durable_objects": { "bindings": [{ "name": "CALLER", "class_name": "CallerObject" }] }
}`,
  "edge.ts": `export class CallerObject {}
export default { fetch: () => Response.json({ served: "by my edge" }) };
`,
  "worker.ts": `import { createServer } from "node:http";
const { HEALTH_PORT, ORDERS_URL, MY_SETTING } = process.env;
const answer = JSON.stringify({ ORDERS_URL, MY_SETTING });
createServer((_req, res) => res.end(answer)).listen(Number(HEALTH_PORT), "127.0.0.1");
`,
  "orders.ts": `import { createServer } from "node:http";
createServer((_req, res) => res.end("orders")).listen(Number(process.argv[3]), "127.0.0.1");
`,
  "local.ts": `export default [{
  name: "the order book",
  option: { name: "sample-orders", description: "orders of a made-up shop" },
  main: new URL("./orders.ts", import.meta.url),
  env: (origin: string) => ({ ORDERS_URL: origin + "/orders" }),
  banner: "orders of a made-up shop",
  check: async (env: NodeJS.ProcessEnv) => ["No orders without " + env.MY_SETTING],
}];
`,
};

export async function makeProject(): Promise<Folder> {
  const project = await folder();
  for (const [name, content] of Object.entries(FILES)) await writeFile(join(project.path, name), content);
  return project;
}
