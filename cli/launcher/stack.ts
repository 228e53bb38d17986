import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { LocalService } from "../../core/author/local-service.ts";
import { DEFAULT_DAYS } from "../../core/jobs/retention.ts";
import type { Bundle } from "../bundle/bundle.ts";
import { mapToSources } from "../bundle/source-map.ts";
import { programPath } from "../package.ts";
import { type Child, startChild } from "../process/child.ts";
import { HOST, type Ports } from "../process/ports.ts";
import type { Service } from "../process/supervise.ts";
import { filesIn, objectsIn } from "./data-directory.ts";
import { refusalIn, spawnEdge } from "./local-edge.ts";

/** The variables that the edge takes unchanged from the environment: all variables that its configuration reads. */
export const EDGE_ENVIRONMENT = `
  RESONATE_TOKEN RESONATE_GROUP RESONATE_NAMESPACE ENCRYPTION_KEYS LOG_LEVEL
  AUTH_MODE OAUTH_ISSUER OAUTH_JWKS_URL OAUTH_AUDIENCE OAUTH_SCOPES BEARER_TOKENS
  OAUTH_READ_SCOPE OAUTH_WRITE_SCOPE OAUTH_TOKENS OAUTH_CLIENT_ID PUBLIC_URL BLOCKED_CALLERS
  ALLOWED_HOSTS CORS_ORIGINS RATE_LIMIT MAX_JOBS MAX_STREAMS MAX_STORED_BYTES TASK_KEY
  RETENTION_DAYS WAIT_SECONDS CONFIRM_ARGUMENTS VIEW_KEY VIEW_LINKS ALLOW_LOOPBACK_CALLBACKS EVENT_ERRORS
  FILES_URL FILES_KEY_ID FILES_SECRET FILES_REGION
  OPERATE OPERATOR_TOKENS OAUTH_OPERATE_SCOPE ALERT_URL ALERT_SECRET PLAN
  OTEL_EXPORTER_OTLP_ENDPOINT OTEL_EXPORTER_OTLP_HEADERS OTEL_SERVICE_NAME
`
  .trim()
  .split(/\s+/);

/** How long a process may take to end after SIGTERM, in milliseconds; the worker drains before that. */
const GRACE = { worker: 4_000, other: 3_000, edge: 1_000 };
/** How long running jobs may go on after SIGTERM, in seconds: short, because they continue at the next start. */
const DRAIN_SECONDS = "2";
/** The edge's configuration unless the environment overrides it. The launcher does not show lines of a lower log level. */
const LOCAL_EDGE = {
  AUTH_MODE: "none",
  ALLOWED_HOSTS: "127.0.0.1,localhost,[::1]",
  OPERATE: "local",
  LOG_LEVEL: "warn",
};

interface StackOptions {
  ports: Ports;
  /** The embedded server's data directory; undefined to keep state in memory. */
  data: string | undefined;
  worker: string;
  /** The project's services that are on, each with its port. */
  services: readonly { service: LocalService; port: number }[];
  /** The embedded server's token, which protects the jobs from other programs on this machine. */
  secret: string;
  /** Options of the Node processes. */
  flags?: readonly string[];
  env: NodeJS.ProcessEnv;
}

/** The processes that make up a server on one machine, and their addresses. */
export interface Stack {
  readonly edgeUrl: string;
  readonly resonateUrl: string;
  readonly workerUrl: string;
  /** The embedded server; undefined if `RESONATE_URL` names a server elsewhere. */
  readonly resonate: Service | undefined;
  readonly services: readonly Service[];
  /** The worker, with the address of its health endpoint. */
  worker(host: string, port: number): Service;
  /** The edge from a bundle. Its output names locations in the sources. `grace`: its time to end, in milliseconds. */
  edge(bundle: Bundle, port: number, bindings: Record<string, string>, grace?: number): Service;
}

export function describeStack({ ports, data, worker, services, secret, flags = [], env: outer }: StackOptions): Stack {
  const isEmbedded = !outer.RESONATE_URL;
  const FILES_URL = outer.FILES_URL || folderOfFiles(data);
  const env: NodeJS.ProcessEnv = { ...outer, FILES_URL, ...(isEmbedded && { RESONATE_TOKEN: secret }) };
  const resonateUrl = env.RESONATE_URL?.replace(/\/+$/, "") || local(ports.resonate);
  // Without authentication, links to job pages need only the edge's address.
  const isOpen = (env.AUTH_MODE || LOCAL_EDGE.AUTH_MODE) === "none";
  const state = data === undefined ? ["--memory"] : ["--data", data];
  const drain = env.DRAIN_SECONDS || DRAIN_SECONDS;
  const fromServices = Object.assign({}, ...services.map(({ service, port }) => service.env(local(port))));

  /** Starts a program on this Node; `added` overrides the environment. */
  const script = (path: string, args: string[], added: Record<string, string> = {}, grace = GRACE.other): Child =>
    startChild(process.execPath, [...flags, path, ...args], { env: { ...env, ...added }, grace });

  return {
    edgeUrl: local(ports.edge),
    resonateUrl,
    workerUrl: healthUrl(healthHost(env), ports.worker),
    resonate: !isEmbedded
      ? undefined
      : {
          name: "Resonate",
          health: `${resonateUrl}/ready`,
          start: async () => {
            const args = ["--port", String(ports.resonate), ...state];
            return script(programPath("server/node/process"), args, { RESONATE_LOCAL_TOKEN: secret });
          },
        },
    services: services.map(({ service, port }) => ({
      name: service.name,
      health: `${local(port)}/health`,
      start: async () => script(fileURLToPath(service.main), ["--port", String(port)]),
    })),
    worker: (host, port) => ({
      name: "the worker",
      health: healthUrl(host, port),
      start: async () => {
        const addresses = { RESONATE_URL: resonateUrl, HEALTH_HOST: host, HEALTH_PORT: String(port) };
        const edge = isOpen && !env.PUBLIC_URL ? { PUBLIC_URL: local(ports.edge) } : {};
        const added = { ...fromServices, ...addresses, ...edge, EDGE_URL: local(ports.edge), DRAIN_SECONDS: drain };
        return script(worker, [], added, GRACE.worker + Number(drain) * 1_000);
      },
    }),
    edge: (bundle, port, bindings, grace = GRACE.edge) => ({
      name: "the edge",
      rewrite: mapToSources(bundle),
      refusal: (lines) => refusalIn(lines.join("\n")),
      health: `${local(port)}/health`,
      start: async () => {
        const given = Object.fromEntries(
          EDGE_ENVIRONMENT.map((name) => [name, env[name]]).filter(([, value]) => value),
        );
        const derived = {
          RESONATE_URL: resonateUrl,
          ...(isEmbedded && { RETENTION_DAYS: env.RETENTION_DAYS || DEFAULT_DAYS }),
          ...(isOpen &&
            !given.PUBLIC_URL &&
            given.ALLOW_LOOPBACK_CALLBACKS !== "1" && { PUBLIC_URL: local(ports.edge) }),
        };
        const all = { ...LOCAL_EDGE, ...bindings, ...given, ...derived };
        const objects = data === undefined ? {} : { data: objectsIn(data) };
        return (await spawnEdge(bundle, { port, bindings: all, grace, ...objects })).process;
      },
    }),
  };
}

/** The folder for files. Without a data directory, it is a temporary one that is removed when this process ends. */
function folderOfFiles(data: string | undefined): string {
  if (data !== undefined) return filesIn(data);
  const folder = mkdtempSync(join(tmpdir(), "durable-mcp-edge-files-"));
  process.once("exit", () => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** The host that the worker's health endpoint listens on. */
export const healthHost = (env: NodeJS.ProcessEnv) => env.HEALTH_HOST || HOST;

/** The address at which this machine reaches a worker that listens on `host`, which may be a wildcard. */
function healthUrl(host: string, port: number): string {
  const name = host === "0.0.0.0" || host === "::" ? HOST : host;
  return `http://${name.includes(":") ? `[${name}]` : name}:${port}/health`;
}

const local = (port: number) => `http://${HOST}:${port}`;
