import { join } from "node:path";
import { bundleEdge } from "./bundle.ts";
import { type Child, startChild } from "./child.ts";
import { spawnEdge } from "./edge.ts";
import type { Options } from "./options.ts";
import type { Service } from "./supervise.ts";
import { taskKey } from "./task-key.ts";

const ROOT = join(import.meta.dirname, "..");
const OPEN_METEO = "https://archive-api.open-meteo.com/v1/archive";

/** What the edge takes over from the environment as it is. */
const EDGE_ENVIRONMENT = [
  ...["RESONATE_TOKEN", "RESONATE_GROUP", "RESONATE_NAMESPACE", "LOG_LEVEL"],
  ...["OAUTH_ISSUER", "OAUTH_JWKS_URL", "OAUTH_AUDIENCE", "OAUTH_SCOPES", "BEARER_TOKENS"],
  ...["CORS_ORIGINS", "RATE_LIMIT", "MAX_JOBS"],
];

/** How long each kind of process may take to end after SIGTERM, in milliseconds. */
const GRACE = { worker: 6_000, other: 3_000 };
/** How long running jobs may go on after SIGTERM: short, as they continue at the next start. In seconds. */
const DRAIN_SECONDS = "2";

/** The processes that make up the product on one machine, and where they find one another. */
export interface Stack {
  readonly edgeUrl: string;
  readonly resonateUrl: string;
  readonly weatherUrl: string;
  /** The embedded server; undefined when `RESONATE_URL` names one that runs elsewhere. */
  readonly resonate: Service | undefined;
  readonly archive: Service | undefined;
  readonly worker: Service;
  readonly edge: Service;
  /** Settles when the edge can be started; it rejects with what is wrong with its sources or its key. */
  readonly prepared: Promise<unknown>;
}

/** `archivePort` is the sample archive's, when there is one. */
export function describeStack(options: Options, archivePort: number): Stack {
  const local = (port: number) => `http://127.0.0.1:${port}`;
  const { RESONATE_URL, WEATHER_API_URL, TASK_KEY } = process.env;
  const edgeUrl = local(options.port);
  const resonateUrl = RESONATE_URL?.replace(/\/+$/, "") || local(options.resonatePort);
  const archiveUrl = local(archivePort);
  const weatherUrl = options.sampleWeather ? `${archiveUrl}/v1/archive` : WEATHER_API_URL || OPEN_METEO;
  const state = options.data === undefined ? ["--memory"] : ["--data", options.data];

  const prepared = Promise.all([bundleEdge(), TASK_KEY || taskKey(options.data)]);
  return {
    prepared,
    edgeUrl,
    resonateUrl,
    weatherUrl,
    resonate: RESONATE_URL
      ? undefined
      : {
          name: "Resonate",
          health: [`${resonateUrl}/ready`],
          start: async () => script("infra/resonate/main.ts", ["--port", String(options.resonatePort), ...state]),
        },
    archive: options.sampleWeather
      ? {
          name: "the sample archive",
          health: [`${archiveUrl}/health`],
          start: async () => script("infra/sample-archive/main.ts", ["--port", String(archivePort)]),
        }
      : undefined,
    worker: {
      name: "the worker",
      health: [`${local(options.workerPort)}/health`],
      start: async () => {
        const env = {
          RESONATE_URL: resonateUrl,
          WEATHER_API_URL: weatherUrl,
          DRAIN_SECONDS,
          HEALTH_HOST: "127.0.0.1",
          HEALTH_PORT: String(options.workerPort),
        };
        return script("worker/main.ts", [], env, GRACE.worker);
      },
    },
    edge: {
      name: "the edge",
      health: [`${edgeUrl}/health`],
      start: async () => {
        const [bundle, key] = await prepared;
        const bindings = {
          ...Object.fromEntries(EDGE_ENVIRONMENT.map((name) => [name, process.env[name]])),
          AUTH_MODE: process.env.AUTH_MODE || "none",
          RESONATE_URL: resonateUrl,
          TASK_KEY: key,
          ALLOWED_HOSTS: "127.0.0.1,localhost,[::1]",
        };
        return (await spawnEdge(bundle, { port: options.port, bindings })).process;
      },
    },
  };
}

/** Starts one of the product's programs on this Node; `env` is added to the environment. */
function script(path: string, args: string[], env: Record<string, string> = {}, grace = GRACE.other): Child {
  return startChild(process.execPath, [join(ROOT, path), ...args], { env: { ...process.env, ...env }, grace });
}
