/** The composition root: makes the parts of an edge from its bindings. */

import { cors } from "hono/cors";
import type { Job } from "../core/author/job.ts";
import type { EdgeFeature } from "../core/feature.ts";
import { RemoteStore } from "../core/jobs/remote-store.ts";
import { retentionOf } from "../core/jobs/retention.ts";
import { ResonateClient } from "../core/resonate/connection/client.ts";
import { endpointOf } from "../core/resonate/connection/endpoint.ts";
import { keyFrom } from "../core/resonate/object-address.ts";
import { JobHandles } from "../core/tools/job-handles.ts";
import type { RequestScope } from "../core/tools/request-scope.ts";
import type { Tool } from "../core/tools/tool.ts";
import { answerSize } from "../features/answer-size/call.ts";
import { Cards, cardFeature } from "../features/cards/cards.ts";
import { consent } from "../features/consent/call.ts";
import { withoutConsent } from "../features/consent/consent.ts";
import { Events, eventFeature } from "../features/events/methods.ts";
import { files } from "../features/files/call.ts";
import type { Files } from "../features/files/files.ts";
import { labelsOfCall } from "../features/labels/call.ts";
import { audit } from "../features/operators/audit.ts";
import { OperatorSettings } from "../features/operators/operator-settings.ts";
import { pageLinks } from "../features/page-links/call.ts";
import { Pages } from "../features/pages/sessions.ts";
import { answerQuestions } from "../features/questions/answer.ts";
import { questions } from "../features/questions/call.ts";
import { resourceLinks } from "../features/resource-links/call.ts";
import { listenMethod } from "../features/tasks/listen.ts";
import { noTasks, tasks } from "../features/tasks/tasks.ts";
import { textOnce } from "../features/text-once/call.ts";
import { proxiedBy, upstream } from "../features/upstream/upstream.ts";
import { createAuth, resourceOf } from "./auth/auth.ts";
import { bareRequest, ToolCalls } from "./calls/tool-calls.ts";
import type { Config } from "./config.ts";
import { identify } from "./http/admission.ts";
import { EdgeLog } from "./http/log.ts";
import { createRateLimit, RefusedTries } from "./http/rate-limit.ts";
import { SharedValue } from "./http/shared-value.ts";
import { StreamSlots } from "./http/stream-slots.ts";
import { jobFeatures } from "./job-features.ts";
import { McpEndpoint } from "./mcp/endpoint.ts";
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
  const handles = key ? new JobHandles(key, config.RESONATE_NAMESPACE) : undefined;
  const pages = new Pages(config, { tools, identity, handles });
  const urlOf = pages.hasLinks ? pages.urlOf.bind(pages) : undefined;
  let loadedFiles: Files | undefined;
  const loadFiles = async () => {
    const { Files } = await import("../features/files/files.ts");
    loadedFiles ??= new Files(env, pages);
    return loadedFiles;
  };
  const mayConfirm = config.CONFIRM_ARGUMENTS !== "off";
  const offered = mayConfirm ? tools : tools.map(withoutConsent);
  const cards = config.ASSETS && new Cards(config.ASSETS, identity.info.name, offered);
  const proxied = proxiedBy(tools);
  const watchable = proxied?.capabilities.resources && {
    weightOfRead: (uri: unknown) => proxied.weightOfRead(uri),
    watch(scope: RequestScope, uris: readonly string[], signal: AbortSignal, onUpdated: (uri: string) => void) {
      return proxied.watch(uris, calls.contextOf(bareRequest(scope, signal)), onUpdated);
    },
  };
  const taskService = handles && {
    handles,
    log,
    urlOf: urlOf ?? (async () => undefined),
    files: loadFiles,
    answer: answerQuestions,
    kept: config.RETENTION_DAYS === undefined ? undefined : retentionOf(config.RETENTION_DAYS),
  };
  const edgeFeatures = listed([
    // Measures what the features after it have made of an answer.
    { name: "answer-size", ...answerSize },
    { name: "resource-links", ...resourceLinks },
    { name: "text-once", ...textOnce },
    // Before the files, whose addresses may look like those of cards.
    cards && cardFeature(cards),
    files(loadFiles),
    urlOf && { name: "page-links", ...pageLinks(urlOf) },
    { name: "labels", ...labelsOfCall },
    handles && questions(handles),
    // After the questions: it depends on whether the client can be asked.
    config.CONFIRM_ARGUMENTS !== "always" && { name: "consent", ...consent },
    taskService
      ? tasks(taskService, listenMethod(taskService, identity.info, watchable))
      : { name: "no-tasks", ...noTasks },
    events && eventFeature(events),
    proxied &&
      upstream(proxied, { contextOf: (request) => calls.contextOf(request), reportsChanges: handles !== undefined }),
    operated && audit((...entry) => operated.operate("heard", ...entry).catch(() => {})),
  ]);
  const served = edgeFeatures.reduce<readonly Tool[]>((all, feature) => feature.tools?.(all) ?? all, offered);
  const rules = { patience: config.WAIT_SECONDS * 1_000, mayConfirm };
  const calls = new ToolCalls(served, edgeFeatures, { log, rules });
  const mcp = new McpEndpoint({ identity, calls, features: edgeFeatures });
  const origins = config.CORS_ORIGINS ?? [];
  const edge: Edge = {
    config,
    identify: (request, line) => identify(request, edge, line),
    files: loadFiles,
    store,
    client,
    log,
    pages,
    callers,
    mcp: (request, scope) => mcp.serve(request, scope),
    auth: createAuth(config.auth, config, log, identity.info.title),
    discovery: async (document, request) => {
      const { documents } = await import("../features/discovery/documents.ts");
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

/** The features that the configuration asks for. */
const listed = (features: readonly (EdgeFeature | false | undefined)[]): EdgeFeature[] =>
  features.filter((feature) => typeof feature === "object");

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
