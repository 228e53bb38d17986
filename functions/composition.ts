/** The composition root: makes the parts of an edge from its bindings. */

import { cors } from "hono/cors";
import type { Caller, Job } from "../core/author/index.ts";
import type { EdgeFeature } from "../core/feature.ts";
import { type JobFeature, RemoteStore, retentionOf, type ViewMethods } from "../core/jobs/index.ts";
import {
  CALLERS_ROLE,
  endpointOf,
  keyFrom,
  OPERATORS_ROLE,
  type Remote,
  ResonateClient,
} from "../core/resonate/index.ts";
import {
  EVENT_ERROR_CODES,
  type Identity,
  JobHandles,
  type Middleware,
  type RequestScope,
  type Tool,
} from "../core/tools/index.ts";
import { answerSize } from "../features/answer-size/call.ts";
import type { CallerListMethods } from "../features/backup/list.ts";
import { refuseBlocked } from "../features/blocked-callers/blocked-callers.ts";
import type { AdmissionMethods } from "../features/blocked-callers/object.ts";
import { callbackRoutes } from "../features/callbacks/routes.ts";
import { Cards, cardFeature } from "../features/cards/cards.ts";
import { consent } from "../features/consent/call.ts";
import { withoutConsent } from "../features/consent/consent.ts";
import { discoveryRoutes } from "../features/discovery/routes.ts";
import { Events, QUERY_PARAMS } from "../features/events/methods.ts";
import type { EventMethods } from "../features/events/object.ts";
import { files } from "../features/files/call.ts";
import type { Files, LoadFiles } from "../features/files/files.ts";
import { fileRoutes } from "../features/files/routes.ts";
import { labelsOfCall } from "../features/labels/call.ts";
import { audit } from "../features/operators/audit.ts";
import type { OperateCalls } from "../features/operators/calls.ts";
import { OperatorSettings } from "../features/operators/operator-settings.ts";
import { operatorRoutes } from "../features/operators/routes.ts";
import { startReporter } from "../features/operators/starts.ts";
import { pageLinks } from "../features/page-links/call.ts";
import { useBrowserSession } from "../features/pages/browser-session.ts";
import { pageRoutes } from "../features/pages/routes.ts";
import { Pages } from "../features/pages/sessions.ts";
import { answerQuestions } from "../features/questions/answer.ts";
import { questions } from "../features/questions/call.ts";
import { createRateLimit, limitRate } from "../features/rate-limit/rate-limit.ts";
import { resourceLinks } from "../features/resource-links/call.ts";
import { schedules } from "../features/schedules/edge.ts";
import type { ScheduleMethods } from "../features/schedules/object.ts";
import { resonateRoutes, rowRoutes } from "../features/shared-resonate/routes.ts";
import { limitStreams, StreamSlots } from "../features/stream-slots/stream-slots.ts";
import { listenMethod } from "../features/tasks/listen.ts";
import { noTasks, tasks } from "../features/tasks/tasks.ts";
import { textOnce } from "../features/text-once/call.ts";
import { traces } from "../features/trace/edge.ts";
import { proxiedBy, upstream } from "../features/upstream/upstream.ts";
import { webHooks } from "../features/web-hooks/methods.ts";
import type { WebHookMethods } from "../features/web-hooks/requests.ts";
import { reportRoutes } from "../features/worker-reports/routes.ts";
import { blockedCallers, listedCallers, type RefusalOf, refusalBy } from "./auth/admission.ts";
import { hasLocalOperators } from "./auth/auth-config.ts";
import { type Auth, createAuth, resourceOf } from "./auth/auth.ts";
import { admitAnyone, authenticate, authorize } from "./auth/authentication.ts";
import { bareRequest, ToolCalls } from "./calls/tool-calls.ts";
import type { Config } from "./config.ts";
import type { RateLimit } from "./http/limits.ts";
import { EdgeLog } from "./http/log.ts";
import { RefusedTries } from "./http/refused-tries.ts";
import { jobFeatures } from "./job-features.ts";
import { McpEndpoint } from "./mcp/endpoint.ts";
import { LegacyRevision } from "./mcp/message.ts";
import { type Callers, callersOf, withoutRecords } from "./objects/callers.ts";
import { createFeed, type ListenerNamespace } from "./objects/feed.ts";
import type { RecordMethods } from "./objects/job-record.ts";
import type { Edge } from "./parts.ts";

/** What a deployment offers, and how it describes itself. */
export interface Deployment {
  jobs: readonly Job[];
  tools: readonly Tool[];
  identity: Identity;
}

/** How long the operators' settings are cached, in milliseconds. */
const SETTINGS_CACHE_MS = 5_000;

/** How long the Resonate server may take to answer, in milliseconds, before a call reports it as unavailable. */
const ANSWER_TIMEOUT_MS = 5_000;

/** What several features use. */
interface EdgeParts extends Deployment {
  config: Config;
  env: object;
  log: EdgeLog;
  client: ResonateClient;
  store: RemoteStore;
  /** The callers' objects; undefined if none are bound. */
  callers: Callers | undefined;
  /** The methods of the operators' object; undefined in a deployment without operators. */
  operators: (() => Remote<OperateCalls>) | undefined;
  refusalOf: RefusalOf;
  events: Events | undefined;
  handles: JobHandles | undefined;
  pages: Pages;
  loadFiles: LoadFiles;
  /** Undefined in a deployment that authenticates nobody. */
  auth: Auth | undefined;
  tries: RefusedTries;
  /** Undefined if there is no limit. */
  limit: RateLimit | undefined;
}

export function compose(deployment: Deployment, config: Config, env: object): Edge {
  const shared = share(deployment, config, env);
  const { identity, log, client, store, auth } = shared;
  const admission = admissionOf(shared);
  const calls = callFeatures(shared);
  const features = [...requestFeatures(shared), ...calls.features, ...routeFeatures(shared, admission)];
  const origins = config.CORS_ORIGINS ?? [];
  return {
    log,
    features,
    admission,
    hosts: config.ALLOWED_HOSTS,
    origins: [...origins, ...(config.PUBLIC_URL === undefined ? [] : [new URL(config.PUBLIC_URL).origin])],
    cors: origins.length > 0 ? cors({ ...CORS, origin: origins.includes("*") ? "*" : [...origins] }) : undefined,
    auth,
    client,
    missing: withoutRecords(config),
    store,
    mcp: new McpEndpoint({ identity, calls: calls.calls, features }),
  };
}

/** Makes what several features use. */
function share(deployment: Deployment, config: Config, env: object): EdgeParts {
  const { jobs, tools } = deployment;
  const identity = withIcon(deployment.identity, config);
  const log = new EdgeLog(config.LOG_LEVEL);
  warn(config, log);
  const listeners = config.LISTENER as ListenerNamespace | undefined;
  const endpoint = { ...endpointOf(config), settlements: listeners && createFeed(listeners) };
  const client = new ResonateClient({ ...endpoint, timeout: ANSWER_TIMEOUT_MS });
  const callers = callersOf(config);
  const codes = EVENT_ERROR_CODES[config.EVENT_ERRORS];
  const hooks = config.auth.AUTH_MODE !== "none";
  const events = callers && new Events({ of: (key) => callers.of<EventMethods>(key), codes, hooks, jobs });
  const operators = config.isOperated && callers ? () => callers.inRole<OperateCalls>(OPERATORS_ROLE) : undefined;
  const listed = config.BLOCKED_CALLERS ?? [];
  const settings = operators && new OperatorSettings(() => operators().settings(), listed, SETTINGS_CACHE_MS);
  const records = callers?.records({ jobs: config.MAX_JOBS, bytes: config.MAX_STORED_BYTES });
  const features: JobFeature[] = jobFeatures({
    jobs,
    records,
    areEventsWanted: () => events?.areWanted === true,
    reportStart: operators && startReporter(operators),
    areStartsStopped: settings && (async () => (await settings.get()).starts_stopped === true),
  });
  const { TASK_KEY, RESONATE } = config;
  const key = TASK_KEY ?? (RESONATE && (() => keyFrom(RESONATE)));
  const handles = key ? new JobHandles(key, config.RESONATE_NAMESPACE) : undefined;
  const pages = new Pages(config, { tools, identity, handles });
  let loadedFiles: Files | undefined;
  return {
    jobs,
    tools,
    identity,
    config,
    env,
    log,
    client,
    store: RemoteStore.of(endpoint, jobs, features, { client, records }),
    callers,
    operators,
    refusalOf: refusalBy([
      blockedCallers(config.auth, async () => (settings ? (await settings.get()).blocked : listed)),
      listedCallers(config.auth),
    ]),
    events,
    handles,
    pages,
    loadFiles: async () => {
      loadedFiles ??= new (await import("../features/files/files.ts")).Files(env, pages);
      return loadedFiles;
    },
    auth: createAuth(config.auth, config, log, identity.info.title),
    tries: new RefusedTries(),
    limit: createRateLimit(config.RATE_LIMITER, config.RATE_LIMIT),
  };
}

/** Says what the configuration leaves out, or opens. */
function warn(config: Config, log: EdgeLog): void {
  if (config.ALLOW_LOOPBACK_CALLBACKS === "1")
    log.warn("web hooks may be sent to this machine", { reason: "ALLOW_LOOPBACK_CALLBACKS" });
  if (config.OPERATE === "local" && !hasLocalOperators(config))
    log.warn("nobody operates this deployment without a token", {
      reason: "PUBLIC_URL is not an address of this machine",
    });
  const missing = withoutRecords(config);
  if (missing !== undefined) log.warn("no record of callers", { reason: missing });
}

/** What a request passes, in this order, before its caller is served. */
function admissionOf({ config, callers, operators, refusalOf, pages, auth, tries, limit }: EdgeParts): Middleware[] {
  const refusalNow =
    callers &&
    ((key: string) =>
      callers
        .of<AdmissionMethods>(key)
        .refusalOf(key)
        .catch(() => undefined));
  return present<Middleware>([
    // Adds the token that is verified next.
    auth && pages.seal && useBrowserSession(pages),
    auth ? authenticate(auth, tries) : admitAnyone,
    // Without authentication an operator may refuse everybody, who are one caller.
    (auth || operators || config.BLOCKED_CALLERS) && refuseBlocked({ refusalOf, refusalNow }),
    // These check the cost of a request in the same order.
    limit && limitRate(limit),
    auth?.authorize && authorize(auth.authorize),
    config.MAX_STREAMS > 0 && limitStreams(new StreamSlots(config.MAX_STREAMS)),
  ]);
}

/** The features that every request passes. */
function requestFeatures({ tools, config, env, callers, log }: EdgeParts): EdgeFeature[] {
  const exportSpan: Parameters<typeof traces>[0] = async (span) => {
    const { exportSpan } = await import("../features/trace/export-span.ts");
    return exportSpan(span, env);
  };
  return present<EdgeFeature>([
    callers && tools.some(({ schedule }) => schedule) && schedules(() => callers.of<ScheduleMethods>("").deploy(), log),
    traces(config.OTEL_EXPORTER_OTLP_ENDPOINT ? exportSpan : undefined),
  ]);
}

/** The features of tool calls and of MCP's methods, the first outermost, and the calls with them around. */
function callFeatures(shared: EdgeParts): { features: EdgeFeature[]; calls: ToolCalls } {
  const { tools, config, identity, log, callers, events, handles, operators, pages, loadFiles } = shared;
  const urlOf = pages.hasLinks ? pages.urlOf.bind(pages) : undefined;
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
    retentionMs: config.RETENTION_DAYS === undefined ? undefined : retentionOf(config.RETENTION_DAYS),
  };
  const features = present<EdgeFeature>([
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
    events?.feature,
    events &&
      callers &&
      webHooks({
        of: (key) => callers.of<WebHookMethods>(key),
        codes: EVENT_ERROR_CODES[config.EVENT_ERRORS],
        queryOf: (params) => events.queryOf(params),
        queryParams: QUERY_PARAMS,
      }),
    proxied &&
      upstream(proxied, { contextOf: (request) => calls.contextOf(request), reportsChanges: handles !== undefined }),
    operators &&
      audit((...entry) =>
        operators()
          .noteCall(...entry)
          .catch(() => {}),
      ),
  ]);
  const servedTools = features.reduce<readonly Tool[]>((all, feature) => feature.tools?.(all) ?? all, offered);
  const rules = { maxWaitMs: config.WAIT_SECONDS * 1_000, mayConfirm };
  const calls = new ToolCalls(servedTools, features, { log, rules });
  return { features, calls };
}

/** The features that serve paths of their own. The first that serves a path answers. */
function routeFeatures(shared: EdgeParts, admission: readonly Middleware[]): EdgeFeature[] {
  const { config, identity, client, store, callers, operators, refusalOf, pages, loadFiles, auth, tries, limit } =
    shared;
  const { RESONATE, RESONATE_PUBLIC, VIEW_KEY } = config;
  const { seal } = pages;
  // Downloads have slots of their own: whoever has the address of a file must not end the streams of its caller.
  const slots = new StreamSlots(config.MAX_STREAMS || Number.POSITIVE_INFINITY);
  const note =
    callers && ((...entry: [string, string, object]) => callers.inRole<OperateCalls>(OPERATORS_ROLE).command(...entry));
  const proxy = { tokens: config, tries, note };
  const reports = callers && {
    key: VIEW_KEY,
    record: (...reports: Parameters<RecordMethods["noteReports"]>) =>
      callers.of<RecordMethods>(reports[0]).noteReports(...reports),
    report: operators && ((report: object) => operators().report(report as never)),
  };
  const describe = (request: Request) => ({
    identity,
    endpoint: resourceOf(request, config),
    earlier: LegacyRevision.options,
    isBearer: config.auth.AUTH_MODE === "bearer",
  });
  const forPages = {
    pages,
    store,
    admission,
    limit,
    authorize: auth?.authorize,
    refusalOf,
    filesIn: async (...of: Parameters<Files["viewsIn"]>) => (await loadFiles()).viewsIn(...of),
    subscribers:
      callers && (({ key }: Caller, job?: string, end?: string) => callers.of<ViewMethods>(key).view(key, job, end)),
  };
  return present<EdgeFeature>([
    { name: "discovery", routes: discoveryRoutes(describe) },
    { name: "pages", routes: pageRoutes(forPages) },
    reports && { name: "worker-reports", routes: reportRoutes(tries, reports) },
    seal && { name: "callbacks", routes: callbackRoutes({ client, seal, tries, limit }) },
    { name: "files", routes: fileRoutes(loadFiles, { store, tries, limit, slots, refusalOf }) },
    // Before the operators' other paths, among which it is.
    callers && {
      name: "rows",
      routes: rowRoutes(() => callers.inRole<CallerListMethods>(CALLERS_ROLE), RESONATE !== undefined, proxy),
    },
    operators && {
      name: "operators",
      routes: operatorRoutes(tries, {
        variables: config,
        operators,
        store,
        client,
        auth,
        refusalOf,
        pages,
      }),
    },
    RESONATE && RESONATE_PUBLIC === "1" && { name: "shared-resonate", routes: resonateRoutes(RESONATE, proxy) },
  ]);
}

/** What the configuration asks for. */
const present = <Part extends object>(parts: readonly (Part | false | undefined)[]): Part[] =>
  parts.filter((part): part is Part => part !== undefined && part !== false);

/** The identity with an icon, if the deployment knows its own address. */
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
