/** The machine's part of a deployment (`infra/compose.yaml`) on the local Docker, with its own keys, data and ports. */
import { randomBytes } from "node:crypto";
import { copyFile, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseEnv } from "node:util";
import { build } from "esbuild";
import { execa } from "execa";
import { freePort } from "../../testing/stack/port.ts";

const ROOT = process.cwd();
export const IMAGE = "durable-mcp-edge-worker-check";

export const docker = async (...args: string[]): Promise<string> => (await execa("docker", args)).stdout;

export interface Machine extends AsyncDisposable {
  /** Runs `docker compose`. */
  compose(...args: string[]): Promise<string>;
  /** Runs `docker compose` without an error for a failure; resolves with the exit code and the output. */
  tried(...args: string[]): Promise<{ exitCode: number | undefined; output: string }>;
  /** The Resonate server, and the edge's configuration with the token for it. */
  readonly resonate: string;
  readonly edgeEnv: Record<string, string>;
  readonly edgeEnvFile: string;
  /** The sample archive's controls. */
  readonly archive: string;
  /** The only container of a service. */
  container(service: string): Promise<string>;
}

/** Writes the configuration, but starts nothing. Disposing of the machine removes everything. */
export async function makeMachine(): Promise<Machine> {
  const dir = await mkdtemp(join(tmpdir(), "containers-"));
  const infra = join(dir, "infra");
  await mkdir(infra);
  await copyFile("infra/compose.yaml", join(infra, "compose.yaml"));
  const [resonatePort, archivePort] = [await freePort(), await freePort()];
  await makeArchive(join(dir, "archive"));
  const keys = ["cli/main.ts", "keys", "--namespace", "check/", "--out", join(infra, "keys")];
  await execa(process.execPath, keys);
  await writeFile(join(infra, "worker.env"), "WEATHER_API_URL=http://archive:8003/v1/archive\n");
  const added = {
    services: {
      worker: { build: { context: ROOT } },
      archive: {
        image: IMAGE,
        init: true,
        command: ["node", "/archive/main.mjs"],
        volumes: [`${join(dir, "archive")}:/archive:ro`],
        ports: [`127.0.0.1:${archivePort}:8003`],
        // The health check of the image requests this port.
        environment: { HEALTH_PORT: "8003" },
      },
    },
  };
  await writeFile(join(infra, "check.json"), JSON.stringify(added));
  const env = {
    POSTGRES_PASSWORD: randomBytes(16).toString("hex"),
    RESONATE_PORT: String(resonatePort),
    WORKER_IMAGE: IMAGE,
    COMPOSE_PROJECT_NAME: `durable-mcp-edge-check-${process.pid}`,
  };
  const files = ["-f", join(infra, "compose.yaml"), "-f", join(infra, "check.json")];
  const run = (args: readonly string[]) =>
    execa("docker", ["compose", "--progress", "quiet", ...files, ...args], { env, all: true, reject: false });
  const tried = async (...args: string[]) => {
    const { exitCode, all } = await run(args);
    return { exitCode, output: all };
  };
  const compose = async (...args: string[]) => {
    const { exitCode, stdout, all } = await run(args);
    if (exitCode !== 0) throw new Error(`docker compose ${args.join(" ")} ended with ${exitCode}:\n${all}`);
    return stdout;
  };
  const edgeEnvFile = join(infra, "keys/edge.env");
  return {
    compose,
    tried,
    resonate: `http://127.0.0.1:${resonatePort}`,
    edgeEnv: parseEnv(await readFile(edgeEnvFile, "utf8")) as Record<string, string>,
    edgeEnvFile,
    archive: `http://127.0.0.1:${archivePort}/_control`,
    container: (service) => compose("ps", "--all", "--quiet", service),
    async [Symbol.asyncDispose]() {
      const { exitCode, all } = await run(["down", "--volumes", "--remove-orphans", "--timeout", "1"]);
      if (exitCode !== 0) console.error(`Not removed:\n${all}`);
      await rm(dir, { recursive: true, force: true });
    },
  };
}

/** Bundles the sample archive into two files, because the worker's image lacks its dependencies. */
async function makeArchive(dir: string): Promise<void> {
  const entryPoints = { main: "lab/containers/archive.mjs" };
  const outExtension = { ".js": ".mjs" };
  await build({
    entryPoints,
    outdir: dir,
    outExtension,
    bundle: true,
    platform: "node",
    format: "esm",
    logLevel: "error",
  });
  await copyFile("tools/weather/sample-archive/seattle-weather.csv", join(dir, "seattle-weather.csv"));
}
