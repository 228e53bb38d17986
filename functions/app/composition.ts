/** What an edge is made of, once for its bindings. */
import type { MiddlewareHandler } from "hono";
import { cors } from "hono/cors";
import type { Tool } from "../../core/author/tool.ts";
import type { Job } from "../../core/definitions/job.ts";
import { RemoteStore } from "../../core/jobs/remote-store.ts";
import { retentionOf } from "../../core/jobs/retention.ts";
import { ResonateClient } from "../../core/store/client.ts";
import { endpointOf } from "../../core/store/endpoint.ts";
import { keyFrom } from "../../core/store/object-address.ts";
import { type Auth, createAuth } from "../auth/auth.ts";
import { createRecords, withoutRecords } from "../caller/callers.ts";
import { EdgeLog } from "../http/log.ts";
import { Counts, createRateLimit, type RateLimit } from "../http/rate-limit.ts";
import { SharedValue } from "../http/shared-value.ts";
import { Streams } from "../http/streams.ts";
import { createFeed } from "../listener/feed.ts";
import { createMcp, type Mcp } from "../mcp/handler.ts";
import type { Identity } from "../mcp/identity.ts";
import { Pages } from "../pages/sessions.ts";
import { TaskHandles } from "../tasks/handle.ts";
import type { Config } from "./config.ts";
import { Discovery } from "./discovery.ts";

/** What a deployment offers, and what it says of itself. */
export interface Deployment {
  jobs: readonly Job[];
  tools: readonly Tool[];
  identity: Identity;
}

export interface Edge {
  store: RemoteStore;
  mcp: Mcp;
  auth: Auth;
  discovery: Discovery;
  rateLimit: RateLimit | undefined;
  streams: Streams;
  /** Tokens that were refused, by the address they came from. */
  refused: Counts;
  /** Whether the Resonate server is ready: undefined, or why it is not. */
  ready: SharedValue<string | undefined>;
  /** What does not work for want of a binding. */
  missing: string | undefined;
  log: EdgeLog;
  pages: Pages;
  /** The host names requests may name and come from, or undefined for any. */
  hosts: string[] | undefined;
  /** The origins whose pages may call the server, besides those of the host that a request is addressed to; `*` for all. */
  origins: readonly string[];
  /** For pages on those that are another server's; undefined when there are none. */
  cors: MiddlewareHandler | undefined;
}

/** How long what was learned of the Resonate server's readiness is told, in milliseconds. */
const READY = { fresh: 2_000, failed: 1_000, turn: 3_000 };

/** How long the Resonate server may take to answer, in milliseconds, before a call says that it is away. */
const PATIENCE = 5_000;

export function createParts({ jobs, tools, identity: said }: Deployment, config: Config): Edge {
  const identity = withIcon(said, config);
  const log = new EdgeLog(config.LOG_LEVEL);
  const settlements = config.LISTENER && createFeed(config.LISTENER);
  const place = { ...endpointOf(config), settlements };
  const client = new ResonateClient({ ...place, timeout: PATIENCE });
  const records = config.CALLER && createRecords(config.CALLER, config.RESONATE_NAMESPACE);
  const missing = withoutRecords(config);
  if (missing !== undefined) log.warn("no record of callers", { reason: missing });
  const store = new RemoteStore(place, jobs, { quota: config.MAX_JOBS, records }, client);
  const { TASK_KEY, RESONATE } = config;
  const key = TASK_KEY ?? (RESONATE && (() => keyFrom(RESONATE)));
  const handles = key ? new TaskHandles(key, config.RESONATE_NAMESPACE) : undefined;
  const pages = new Pages(config, { tools, identity, handles });
  const origins = config.CORS_ORIGINS ?? [];
  return {
    store,
    log,
    pages,
    mcp: createMcp({
      tools,
      identity,
      handles,
      kept: config.RETENTION_DAYS === undefined ? undefined : retentionOf(config.RETENTION_DAYS),
      log,
      pages,
      policy: { patience: config.WAIT_SECONDS * 1_000, mayConfirm: config.CONFIRM_ARGUMENTS === "on" },
    }),
    auth: createAuth(config.auth, config, log, identity.info.title),
    discovery: new Discovery(identity, config),
    rateLimit: createRateLimit(config),
    streams: new Streams(config.MAX_STREAMS),
    refused: new Counts(),
    ready: new SharedValue(READY),
    missing,
    hosts: config.ALLOWED_HOSTS,
    origins: [...origins, ...(config.PUBLIC_URL === undefined ? [] : [new URL(config.PUBLIC_URL).origin])],
    cors: origins.length > 0 ? cors({ ...CORS, origin: origins.includes("*") ? "*" : [...origins] }) : undefined,
  };
}

/** What a server says of itself with its icon, where it knows its own address. */
function withIcon(identity: Identity, { PUBLIC_URL, ASSETS }: Config): Identity {
  if (PUBLIC_URL === undefined || !ASSETS) return identity;
  const icon = { src: new URL("/assets/icon.svg", PUBLIC_URL).href, mimeType: "image/svg+xml", sizes: ["any"] };
  return { ...identity, info: { ...identity.info, icons: [icon] } };
}

/** What a client in a browser sends and reads besides what every page may. */
const CORS = {
  allowMethods: ["GET", "POST", "DELETE"],
  exposeHeaders: ["www-authenticate", "mcp-session-id", "mcp-protocol-version", "retry-after", "x-request-id"],
  maxAge: 86_400,
};
