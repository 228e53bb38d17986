/** One generation of the product: this checkout, or an earlier commit in a folder beside it. Its parts run as processes. */
import { existsSync } from "node:fs";
import { symlink } from "node:fs/promises";
import { join, resolve } from "node:path";
import { execa } from "execa";
import { until } from "../../testing/simulation/program.ts";
import { freePort } from "../../testing/stack/port.ts";

export type Part = "server" | "worker" | "edge";

/** A process of a part. Disposing of it kills the process, as a crash would. */
export interface Running extends AsyncDisposable {
  readonly url: string;
}

export interface Generation {
  readonly name: string;
  start(part: Part, options: { port: number; env: Record<string, string>; data: string }): Promise<Running>;
}

/** The paths of the parts: before the folders were named by role, and since then. */
const LAYOUTS = [
  {
    edge: "cli/launcher/local-edge.ts",
    server: { node: "server/node/process.ts", object: "test/support/object/object-process.ts" },
  },
  {
    edge: "infra/launcher/edge.ts",
    server: { node: "infra/resonate/node/main.ts", object: "test/support/object/main.ts" },
  },
];

/** Where the embedded server runs. */
export type Host = "node" | "object";

/** The generation in the folder `root`. */
export function generationAt(name: string, root: string, host: Host = "node"): Generation {
  const layout = LAYOUTS.find(({ edge }) => existsSync(join(root, edge)));
  if (!layout) throw new Error(`${root} holds no generation of this project that is known here`);
  const serveEdge = `
    const { startEdge } = await import(${JSON.stringify(resolve(root, layout.edge))});
    await startEdge(JSON.parse(process.env.EDGE_OPTIONS));
    setInterval(() => {}, 60_000);`;
  return {
    name,
    async start(part, { port, env, data }) {
      const url = `http://127.0.0.1:${port}`;
      const commands: Record<Part, { args: string[]; env: Record<string, string>; ready: string }> = {
        server: { args: [layout.server[host], "--port", `${port}`, "--data", data], env: {}, ready: `${url}/ready` },
        worker: { args: ["worker/main.ts"], env: { ...env, HEALTH_PORT: `${port}` }, ready: `${url}/health` },
        edge: {
          args: ["--input-type=module", "--eval", serveEdge],
          env: { EDGE_OPTIONS: JSON.stringify({ port, bindings: env, data }) },
          ready: `${url}/health`,
        },
      };
      const command = commands[part];
      const child = spawn(process.execPath, command.args, root, command.env);
      const running = { url, [Symbol.asyncDispose]: () => kill(child) };
      await until(`the ${name} ${part} to be ready`, () => isReady(child, command.ready), 60_000);
      return running;
    },
  };
}

/** A release of the standalone server, as the part `server` of a deployment. */
export const releaseOf = (program: string): Generation => ({
  name: program,
  start: (_part, { port, data }) => startRealServer(program, data, port),
});

/** Checks out `commit` beside this checkout, with this checkout's dependencies; resolves with its generation. */
export async function generationOf(commit: string, host: Host): Promise<Generation> {
  const root = resolve(".build/upgrade", commit);
  if (!existsSync(root)) {
    await execa("git", ["worktree", "add", "--force", "--detach", root, commit]);
    await symlink(resolve("node_modules"), join(root, "node_modules"));
  }
  return generationAt(commit, root, host);
}

/** A standalone Resonate server that keeps its SQLite file in the folder `data`. */
export async function startRealServer(program: string, data: string, given?: number): Promise<Running> {
  const port = given ?? (await freePort());
  const options = ["--server-bind", "127.0.0.1", "--server-port", `${port}`, "--observability-metrics-port", "0"];
  const env = { RESONATE_TASKS__RETRY_TIMEOUT: "5000" };
  const child = spawn(program, ["serve", "--storage-type", "sqlite", "--level", "warn", ...options], data, env);
  const url = `http://127.0.0.1:${port}`;
  await until(`${program} to be ready`, () => isReady(child, `${url}/ready`));
  return { url, [Symbol.asyncDispose]: () => kill(child) };
}

type Child = ReturnType<typeof spawn>;

function spawn(program: string, args: readonly string[], cwd: string, env: Record<string, string>) {
  return execa(program, args, { cwd, env, all: true, reject: false });
}

async function isReady(child: Child, url: string): Promise<boolean> {
  if (child.exitCode !== null) throw new Error(`it ended at its start:\n${(await child).all}`);
  return fetch(url).then(
    ({ ok }) => ok,
    () => false,
  );
}

async function kill(child: Child): Promise<void> {
  child.kill("SIGKILL");
  await child;
}
