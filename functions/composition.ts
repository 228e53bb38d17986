/** The composition root: makes the parts of an edge from its bindings. */

import { cors } from "hono/cors";
import type { Job } from "../core/author/job.ts";
import { RemoteStore } from "../core/jobs/remote-store.ts";
import { retentionOf } from "../core/jobs/retention.ts";
import { ResonateClient } from "../core/resonate/connection/client.ts";
import { endpointOf } from "../core/resonate/connection/endpoint.ts";
import { keyFrom } from "../core/resonate/object-address.ts";
import { migrating } from "../core/resonate/sealing.ts";
import type { Tool } from "../core/tools/tool.ts";
import { Cards } from "../features/cards/cards.ts";
import { Events } from "../features/events/methods.ts";
import type { Files } from "../features/files/files.ts";
import { OperatorSettings } from "../features/operators/operator-settings.ts";
import { Pages } from "../features/pages/sessions.ts";
import { TaskHandles } from "../features/tasks/handle.ts";
import { createAuth, resourceOf } from "./auth/auth.ts";
import { ToolCalls } from "./calls/tool-calls.ts";
import type { Config } from "./config.ts";
import { identify } from "./http/admission.ts";
import { loadSdk } from "./http/load-sdk.ts";
import { EdgeLog } from "./http/log.ts";
import { createRateLimit, RefusedTries } from "./http/rate-limit.ts";
import { SharedValue } from "./http/shared-value.ts";
import { StreamSlots } from "./http/stream-slots.ts";
import { jobFeatures } from "./job-features.ts";
import { loadLazy } from "./load-lazy.ts";
import { createMcp } from "./mcp/endpoint.ts";
import type { Identity } from "./mcp/identity.ts";
import { LegacyRevision } from "./mcp/message.ts";
import { callersOf, withoutRecords } from "./objects/callers.ts";
import { createFeed, type ListenerNamespace } from "./objects/feed.ts";
import type { Edge } from "./parts.ts";

/** What a deployment offers, and how it describes itself. */
export interface Deployment {
  jobs: readonly Job[];
  tools: readonly Tool[];
  identity: Identity;
}

/** How long the operators' settings are cached, in milliseconds. */
const SETTINGS = 5_000;

/** How long the readiness of the Resonate server is cached, in milliseconds. */
const READY = { fresh: 2_000, failed: 1_000, turn: 3_000 };

/** How long the Resonate server may take to answer, in milliseconds, before a call reports it as unavailable. */
const PATIENCE = 5_000;

export function createParts({ jobs, tools, identity: described }: Deployment, config: Config, env: object): Edge {
  const identity = withIcon(described, config);
  const log = new EdgeLog(config.LOG_LEVEL);
  const listeners = config.LISTENER as ListenerNamespace | undefined;
  const settlements = listeners && createFeed(listeners);
  const endpoint = { ...endpointOf(config), settlements };
  const client = new ResonateClient({ ...endpoint, timeout: PATIENCE });
  const callers = callersOf(config);
  const hooks = config.auth.AUTH_MODE !== "none";
  const events = callers && new Events({ callers, codes: config.EVENT_ERRORS, hooks, jobs });
  if (config.ALLOW_LOOPBACK_CALLBACKS === "1")
    log.warn("web hooks may be sent to this machine", { reason: "ALLOW_LOOPBACK_CALLBACKS" });
  const missing = withoutRecords(config);
  if (missing !== undefined) log.warn("no record of callers", { reason: missing });
  const migration = migrating(config.ENCRYPTION_KEYS);
  if (migration !== undefined) log.warn("text in clear is accepted", { reason: migration });
  const operated = config.isOperated ? callers : undefined;
  const settings = new OperatorSettings(config, callers, SETTINGS);
  const records = callers?.records({ jobs: config.MAX_JOBS, bytes: config.MAX_STORED_BYTES });
  const features = jobFeatures({
    jobs,
    records,
    isHeard: () => events?.isHeard === true,
    reportStart: operated?.reportStart,
    areStartsStopped: operated && (async () => (await settings.get()).starts_stopped === true),
  });
  const store = RemoteStore.of(endpoint, jobs, features, { client, records });
  const { TASK_KEY, RESONATE } = config;
  const key = TASK_KEY ?? (RESONATE && (() => keyFrom(RESONATE)));
  const handles = key ? new TaskHandles(key, config.RESONATE_NAMESPACE) : undefined;
  const pages = new Pages(config, { tools, identity, handles });
  let loadedFiles: Files | undefined;
  const files = async () => {
    loadedFiles ??= new (await loadLazy()).Files(env, pages);
    return loadedFiles;
  };
  const kept = config.RETENTION_DAYS === undefined ? undefined : retentionOf(config.RETENTION_DAYS);
  const answering = { pages, log, files };
  const tasks = handles && { ...answering, handles, kept };
  const cards = config.ASSETS && new Cards(config.ASSETS, identity.info.name, tools);
  const rules = {
    patience: config.WAIT_SECONDS * 1_000,
    mayConfirm: config.CONFIRM_ARGUMENTS !== "off",
    trusts: config.CONFIRM_ARGUMENTS === "always",
  };
  const calls = new ToolCalls(cards?.tools ?? tools, { ...answering, tasks, rules });
  const origins = config.CORS_ORIGINS ?? [];
  const edge: Edge = {
    config,
    identify: (request, line) => identify(request, edge, line),
    files,
    loadSdk,
    store,
    client,
    log,
    pages,
    callers,
    mcp: createMcp({
      ...{ identity, calls, tasks, events, cards, files },
      trail: operated && ((...given) => operated.operate("heard", ...given).catch(() => {})),
    }),
    auth: createAuth(config.auth, config, log, identity.info.title),
    discovery: async (document, request) => {
      const { documents } = await loadLazy();
      const isBearer = config.auth.AUTH_MODE === "bearer";
      const endpoint = resourceOf(request, config);
      return documents[document]({ identity, endpoint, earlier: LegacyRevision.options, isBearer });
    },
    rateLimit: createRateLimit(config.RATE_LIMITER, config.RATE_LIMIT),
    slots: new StreamSlots(config.MAX_STREAMS),
    settings: settings.get,
    refused: new RefusedTries(),
    ready: new SharedValue(READY),
    deploy: callers && tools.some(({ schedule }) => schedule) ? () => callers.makeSchedules(log) : undefined,
    missing,
    origins: [...origins, ...(config.PUBLIC_URL === undefined ? [] : [new URL(config.PUBLIC_URL).origin])],
    cors: origins.length > 0 ? cors({ ...CORS, origin: origins.includes("*") ? "*" : [...origins] }) : undefined,
  };
  return edge;
}

/** The identity with an icon, where the deployment knows its own address. */
function withIcon(identity: Identity, { PUBLIC_URL, ASSETS }: Config): Identity {
  if (PUBLIC_URL === undefined || !ASSETS) return identity;
  const icon = { src: new URL("/assets/icon.svg", PUBLIC_URL).href, mimeType: "image/svg+xml", sizes: ["any"] };
  return { ...identity, info: { ...identity.info, icons: [icon] } };
}

/** Methods and headers of clients in browsers, besides those that every page may use. */
const CORS = {
  allowMethods: ["GET", "POST", "DELETE"],
  exposeHeaders: ["www-authenticate", "mcp-session-id", "mcp-protocol-version", "retry-after", "x-request-id"],
  maxAge: 86_400,
};
