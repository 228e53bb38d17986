import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { DEFAULT_DAYS } from "../../core/jobs/retention.ts";
import type { Bundle } from "../bundle/bundle.ts";
import { sourcePlaces } from "../bundle/source-map.ts";
import { programPath } from "../package.ts";
import { type Child, startChild } from "../process/child.ts";
import type { Ports } from "../process/ports.ts";
import type { Service } from "../process/supervise.ts";
import { spawnEdge } from "./local-edge.ts";
import type { LocalService } from "./local-services.ts";

export const HOST = "127.0.0.1";

/** What the edge takes over from the environment as it is: all that its configuration reads. */
export const EDGE_ENVIRONMENT = [
  ...["RESONATE_TOKEN", "RESONATE_GROUP", "RESONATE_NAMESPACE", "ENCRYPTION_KEYS", "LOG_LEVEL"],
  ...["AUTH_MODE", "OAUTH_ISSUER", "OAUTH_JWKS_URL", "OAUTH_AUDIENCE", "OAUTH_SCOPES", "BEARER_TOKENS"],
  ...["OAUTH_READ_SCOPE", "OAUTH_WRITE_SCOPE", "OAUTH_TOKENS", "OAUTH_CLIENT_ID", "PUBLIC_URL", "BLOCKED_CALLERS"],
  ...["ALLOWED_HOSTS", "CORS_ORIGINS", "RATE_LIMIT", "MAX_JOBS", "MAX_STREAMS", "TASK_KEY"],
  ...["RETENTION_DAYS", "WAIT_SECONDS", "CONFIRM_ARGUMENTS", "VIEW_KEY", "VIEW_LINKS"],
];

/** How long a process may take to end after SIGTERM, in milliseconds; the worker's comes on top of its draining. */
const GRACE = { worker: 4_000, other: 3_000, edge: 1_000 };
/** How long running jobs may go on after SIGTERM: short, as they continue at the next start. In seconds. */
const DRAIN_SECONDS = "2";
/** What the edge of a stack is configured with unless the environment says otherwise. */
const LOCAL_EDGE = { AUTH_MODE: "none", ALLOWED_HOSTS: "127.0.0.1,localhost,[::1]" };

export interface StackOptions {
  ports: Ports;
  /** Where the embedded Resonate keeps its state; undefined when it keeps none. */
  data: string | undefined;
  /** The program that runs the worker. */
  worker: string;
  /** The project's services that are on, each with the port it gets. */
  services: readonly { service: LocalService; port: number }[];
  /** What the embedded server asks for, so that no other program of this machine gets at the jobs. */
  secret: string;
  env: NodeJS.ProcessEnv;
}

/** The processes that make up a server on one machine, and where they find one another. */
export interface Stack {
  readonly edgeUrl: string;
  readonly resonateUrl: string;
  readonly workerUrl: string;
  /** The embedded server; undefined when `RESONATE_URL` names one that runs elsewhere. */
  readonly resonate: Service | undefined;
  readonly services: readonly Service[];
  /** The worker, answering for its health at an address. */
  worker(host: string, port: number): Service;
  /** The edge, by a bundle, its places told as those of the sources; `grace` is how long it may take to end, in milliseconds. */
  edge(bundle: Bundle, port: number, bindings: Record<string, string>, grace?: number): Service;
}

export function describeStack({ ports, data, worker, services, secret, env: outer }: StackOptions): Stack {
  const isEmbedded = !outer.RESONATE_URL;
  // The secret of the embedded server is what the others show it.
  const env = isEmbedded ? { ...outer, RESONATE_TOKEN: secret } : outer;
  const resonateUrl = env.RESONATE_URL?.replace(/\/+$/, "") || local(ports.resonate);
  const state = data === undefined ? ["--memory"] : ["--data", data];
  const drain = env.DRAIN_SECONDS || DRAIN_SECONDS;
  const fromServices = Object.assign({}, ...services.map(({ service, port }) => service.env(local(port))));

  /** Starts a program on this Node; `added` goes over the environment. */
  const script = (path: string, args: string[], added: Record<string, string> = {}, grace = GRACE.other): Child =>
    startChild(process.execPath, [path, ...args], { env: { ...env, ...added }, grace });

  return {
    edgeUrl: local(ports.edge),
    resonateUrl,
    workerUrl: healthUrl(healthHost(env), ports.worker),
    resonate: !isEmbedded
      ? undefined
      : {
          name: "Resonate",
          health: [`${resonateUrl}/ready`],
          start: async () => {
            const args = ["--port", String(ports.resonate), ...state];
            return script(programPath("server/node/process"), args, { RESONATE_LOCAL_TOKEN: secret });
          },
        },
    services: services.map(({ service, port }) => ({
      name: service.name,
      health: [`${local(port)}/health`],
      start: async () => script(fileURLToPath(service.main), ["--port", String(port)]),
    })),
    worker: (host, port) => ({
      name: "the worker",
      health: [healthUrl(host, port)],
      start: async () => {
        const place = { RESONATE_URL: resonateUrl, HEALTH_HOST: host, HEALTH_PORT: String(port) };
        const added = { ...fromServices, ...place, DRAIN_SECONDS: drain };
        return script(worker, [], added, GRACE.worker + Number(drain) * 1_000);
      },
    }),
    edge: (bundle, port, bindings, grace = GRACE.edge) => ({
      name: "the edge",
      rewrite: sourcePlaces(bundle, process.cwd()),
      health: [`${local(port)}/health`],
      start: async () => {
        const given = Object.fromEntries(
          EDGE_ENVIRONMENT.map((name) => [name, env[name]]).filter(([, value]) => value),
        );
        // Where everybody is let in, what tools say of a job's page needs no more than where that is.
        const isOpen = (given.AUTH_MODE ?? LOCAL_EDGE.AUTH_MODE) === "none";
        const place = {
          RESONATE_URL: resonateUrl,
          ...(isEmbedded && { RETENTION_DAYS: env.RETENTION_DAYS || DEFAULT_DAYS }),
          ...(isOpen && !given.PUBLIC_URL && { PUBLIC_URL: local(ports.edge) }),
        };
        const all = { ...LOCAL_EDGE, ...bindings, ...given, ...place };
        const objects = data === undefined ? {} : { data: join(data, "objects") };
        return (await spawnEdge(bundle, { port, bindings: all, grace, ...objects })).process;
      },
    }),
  };
}

/** Where the worker is to listen for questions about its health. */
export const healthHost = (env: NodeJS.ProcessEnv) => env.HEALTH_HOST || HOST;

/** Where this machine reaches a worker that listens on `host`, which may be every address of the machine. */
function healthUrl(host: string, port: number): string {
  const name = host === "0.0.0.0" || host === "::" ? HOST : host;
  return `http://${name.includes(":") ? `[${name}]` : name}:${port}/health`;
}

const local = (port: number) => `http://${HOST}:${port}`;
