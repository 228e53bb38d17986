/** Two builds of this code: this checkout, and a copy of it whose edge has another version. Their parts run as processes. */
import { existsSync } from "node:fs";
import { cp, mkdir, readFile, symlink, writeFile } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { execa } from "execa";
import { type Program, run, waitForAnswer } from "../../testing/stack/program.ts";

export type Part = "server" | "worker" | "edge";

export interface Build {
  readonly name: string;
  /** The version that its edge tells clients. */
  readonly version: string;
  /** Starts a part on a port of this machine. The server and the edge keep their state in the folder `data`. */
  start(part: Part, options: { port: number; data: string; env: Record<string, string> }): Promise<Program>;
}

/** The place of the edge's version in its source. */
const VERSION = /(?<=version: ")[^"]+/;
const EDGE = "functions/index.ts";
const SERVE_EDGE = "lab/upgrade/edge.ts";

async function buildAt(name: string, root: string): Promise<Build> {
  const [version = ""] = VERSION.exec(await readFile(join(root, EDGE), "utf8")) ?? [];
  await execa(process.execPath, [SERVE_EDGE], { cwd: root }); // A deployment bundles its edge before it replaces the other.
  return {
    name,
    version,
    async start(part, { port, data, env }) {
      const parts: Record<Part, [script: string, options: { args?: string[]; env?: Record<string, string> }]> = {
        server: ["server/node/process.ts", { args: ["--port", `${port}`, "--data", data] }],
        worker: ["worker/main.ts", { env: { ...env, HEALTH_PORT: `${port}` } }],
        edge: [SERVE_EDGE, { env: { EDGE_OPTIONS: JSON.stringify({ port, data, bindings: env }) } }],
      };
      const [script, options] = parts[part];
      const program = run(join(root, script), { ...options, cwd: root });
      await waitForAnswer(`http://127.0.0.1:${port}/${part === "server" ? "ready" : "health"}`, program);
      return program;
    },
  };
}

export const thisBuild = (): Promise<Build> => buildAt("this build", resolve("."));

/** Copies the files of this checkout that git does not ignore into a new folder, and gives the edge of the copy another version. */
export async function nextBuild(root: string): Promise<Build> {
  const { stdout } = await execa("git", ["ls-files", "-z", "--cached", "--others", "--exclude-standard"]);
  for (const file of stdout.split("\0").filter((name) => name !== "" && existsSync(name))) {
    await mkdir(dirname(join(root, file)), { recursive: true });
    await cp(file, join(root, file));
  }
  await symlink(resolve("node_modules"), join(root, "node_modules"));
  const edge = join(root, EDGE);
  await writeFile(edge, (await readFile(edge, "utf8")).replace(VERSION, "$&-next"));
  return buildAt("the next build", root);
}
