import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { LocalService } from "../../core/author/index.ts";
import { DEFAULT_DAYS } from "../../core/jobs/index.ts";
import type { Bundle } from "../bundle/bundle.ts";
import { mapToSources } from "../bundle/source-map.ts";
import { programPath } from "../package.ts";
import { type Child, startChild } from "../process/child.ts";
import { HOST, type Ports } from "../process/ports.ts";
import type { Service } from "../process/supervise.ts";
import { filesIn, objectsIn } from "./data-directory.ts";
import { refusalIn, spawnEdge } from "./local-edge.ts";

/** The variables that the edge gets unchanged from the environment: all variables that its configuration reads. */
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

/** How long a process may take to end after SIGTERM; the worker drains before that. */
const WORKER_GRACE_MS = 4_000;
const EDGE_GRACE_MS = 1_000;
const GRACE_MS = 3_000;
/** How long running jobs may continue after SIGTERM, in seconds: short, because they continue at the next start. */
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

export function describeStack(options: StackOptions): Stack {
  const { ports, data, services, secret, env: outer } = options;
  const isEmbedded = !outer.RESONATE_URL;
  const FILES_URL = outer.FILES_URL || folderOfFiles(data);
  const env: NodeJS.ProcessEnv = { ...outer, FILES_URL, ...(isEmbedded && { RESONATE_TOKEN: secret }) };
  const resonateUrl = env.RESONATE_URL?.replace(/\/+$/, "") || local(ports.resonate);
  const context: StackContext = { ...options, env, isEmbedded, resonateUrl };
  return {
    edgeUrl: local(ports.edge),
    resonateUrl,
    workerUrl: healthUrl(healthHost(env), ports.worker),
    resonate: isEmbedded ? embeddedServer(context) : undefined,
    services: services.map(({ service, port }) => ({
      name: service.name,
      health: `${local(port)}/health`,
      start: async () => startScript(context, fileURLToPath(service.main), { args: ["--port", String(port)] }),
    })),
    worker: (host, port) => workerService(context, host, port),
    edge: (bundle, port, bindings, grace = EDGE_GRACE_MS) => ({
      name: "the edge",
      rewrite: mapToSources(bundle),
      refusal: (lines) => refusalIn(lines.join("\n")),
      health: `${local(port)}/health`,
      start: async () => {
        const objects = data === undefined ? {} : { data: objectsIn(data) };
        const edge = { port, bindings: edgeBindings(context, bindings), grace, ...objects };
        return (await spawnEdge(bundle, edge)).process;
      },
    }),
  };
}

interface StackContext extends StackOptions {
  readonly isEmbedded: boolean;
  readonly resonateUrl: string;
}

/** Starts a program on this Node; `env` overrides the environment. */
function startScript(
  { flags = [], env: outer }: StackContext,
  path: string,
  { args = [], env = {}, grace = GRACE_MS }: { args?: string[]; env?: Record<string, string>; grace?: number },
): Child {
  return startChild(process.execPath, [...flags, path, ...args], { env: { ...outer, ...env }, grace });
}

function embeddedServer(context: StackContext): Service {
  const { ports, data, secret, resonateUrl } = context;
  const state = data === undefined ? ["--memory"] : ["--data", data];
  const args = ["--port", String(ports.resonate), ...state];
  return {
    name: "Resonate",
    health: `${resonateUrl}/ready`,
    start: async () =>
      startScript(context, programPath("server/node/process"), { args, env: { RESONATE_LOCAL_TOKEN: secret } }),
  };
}

function workerService(context: StackContext, host: string, port: number): Service {
  const { ports, services, worker, env, resonateUrl } = context;
  const drain = env.DRAIN_SECONDS || DRAIN_SECONDS;
  const workerEnv = {
    ...Object.assign({}, ...services.map(({ service, port }) => service.env(local(port)))),
    RESONATE_URL: resonateUrl,
    HEALTH_HOST: host,
    HEALTH_PORT: String(port),
    ...(isOpen(env) && !env.PUBLIC_URL && { PUBLIC_URL: local(ports.edge) }),
    EDGE_URL: local(ports.edge),
    DRAIN_SECONDS: drain,
    STATE_CHECKS: env.STATE_CHECKS || "always",
  };
  return {
    name: "the worker",
    health: healthUrl(host, port),
    start: async () => startScript(context, worker, { env: workerEnv, grace: WORKER_GRACE_MS + Number(drain) * 1_000 }),
  };
}

/** The text bindings of the edge: its defaults on one machine, `bindings`, and above them the environment. */
function edgeBindings({ ports, env, isEmbedded, resonateUrl }: StackContext, bindings: Record<string, string>) {
  const settings = Object.fromEntries(EDGE_ENVIRONMENT.map((name) => [name, env[name]]).filter(([, value]) => value));
  const isLinked = isOpen(env) && !settings.PUBLIC_URL && settings.ALLOW_LOOPBACK_CALLBACKS !== "1";
  return {
    ...LOCAL_EDGE,
    ...bindings,
    ...settings,
    RESONATE_URL: resonateUrl,
    ...(isEmbedded && { RETENTION_DAYS: env.RETENTION_DAYS || DEFAULT_DAYS }),
    ...(isLinked && { PUBLIC_URL: local(ports.edge) }),
  };
}

/** Whether there is no authentication: then links to job pages need only the edge's address. */
const isOpen = (env: NodeJS.ProcessEnv) => (env.AUTH_MODE || LOCAL_EDGE.AUTH_MODE) === "none";

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
