/** The parts of a deployment's objects, by role: an object opens those of its role, in this order. */
import { isPublicHost } from "../../core/author/index.ts";
import {
  type CallerRecords,
  type ObjectPart,
  ProgressFeeds,
  RemoteStore,
  retentionOf,
  startedJob,
} from "../../core/jobs/index.ts";
import {
  CALLER_ROLE,
  CALLERS_ROLE,
  endpointOf,
  MAX_JOB_BYTES,
  OPERATORS_ROLE,
  type Remote,
  ResonateClient,
  BatchedReads,
} from "../../core/resonate/index.ts";
import { EVENT_ERROR_CODES } from "../../core/tools/index.ts";
import { CallerList, type CallerListMethods } from "../../features/backup/list.ts";
import { type BackupMethods, backup } from "../../features/backup/object.ts";
import { admission } from "../../features/blocked-callers/object.ts";
import { cleanUp } from "../../features/clean-up/start.ts";
import { EventPart } from "../../features/events/object.ts";
import { keepsFiles } from "../../features/files/kept.ts";
import { filesOfForgotten } from "../../features/files/object.ts";
import type { OperateCalls } from "../../features/operators/calls.ts";
import { operatorsObject } from "../../features/operators/object.ts";
import { OperatorSettings } from "../../features/operators/operator-settings.ts";
import { type ReportStart, startReporter } from "../../features/operators/starts.ts";
import { CallerUsageReporter } from "../../features/operators/usage.ts";
import { objectView } from "../../features/pages/object.ts";
import { Pages } from "../../features/pages/sessions.ts";
import { SchedulePart } from "../../features/schedules/object.ts";
import { fetchTo } from "../../features/web-hooks/address.ts";
import { WebHookPart } from "../../features/web-hooks/object.ts";
import { blockedCallers, listedCallers, type RefusalOf, refusalBy } from "../auth/admission.ts";
import { type Config, readConfig } from "../config.ts";
import { EdgeLog } from "../http/log.ts";
import { jobFeatures } from "../job-features.ts";
import { CallerObject, type ObjectState, type OpenRole, type RoleHost } from "./caller-object.ts";
import { type Callers, callersOf, recordBy } from "./callers.ts";
import { definitions } from "./definitions.ts";
import { createFeed, type ListenerNamespace } from "./feed.ts";
import { JobRecord } from "./job-record.ts";
import { Watch } from "./watch.ts";

/** How long the Resonate server may take to answer, in milliseconds. */
const ANSWER_TIMEOUT_MS = 5_000;

/** How long the operators' settings are cached, in milliseconds. */
const SETTINGS_CACHE_MS = 10_000;

/** What the parts of a role share. */
interface Deployment {
  config: Config;
  env: object;
  client: ResonateClient;
  /** Reads of promises that begin together are one request, if the server offers that. */
  reads: BatchedReads;
  /** How many requests the client has sent. */
  requests(): number;
  /** Undefined if no objects are bound, as in an object that runs by itself. */
  callers: Callers | undefined;
  /** Undefined in a deployment without operators. */
  operators: (() => Remote<OperateCalls>) | undefined;
}

/** Opens an object of the deployment whose bindings are `env`. */
export function openObject(state: ObjectState, env: object): CallerObject {
  const config = readConfig(env);
  const callers = callersOf(config);
  let requestCount = 0;
  const onRequest = () => {
    requestCount += 1;
  };
  const client = new ResonateClient({ ...endpointOf(config), timeout: ANSWER_TIMEOUT_MS, onRequest });
  const deployment: Deployment = {
    config,
    env,
    client,
    reads: new BatchedReads(client),
    requests: () => requestCount,
    callers,
    operators: config.isOperated && callers ? () => callers.inRole<OperateCalls>(OPERATORS_ROLE) : undefined,
  };
  const roles: Record<string, OpenRole> = {
    [CALLER_ROLE]: (host) => callerParts(host, deployment),
    [CALLERS_ROLE]: (host) => [new CallerList(host.sql, (key) => callersIn(deployment).of<BackupMethods>(key))],
    [OPERATORS_ROLE]: (host) => operatorsParts(host, deployment),
  };
  return new CallerObject(state, roles);
}

/** The parts of the object of one caller. */
function callerParts(host: RoleHost, deployment: Deployment): ObjectPart[] {
  const { config, env, reads, operators } = deployment;
  const feeds = new ProgressFeeds(reads);
  const pages = new Pages(config, {} as never);
  const refusalOf = refusalIn(deployment);
  const follow = (until: number, andFeeds: boolean) => watch.extend(until, andFeeds);

  // The others enter their rows beside its jobs. It runs first at an alarm, since an operator may have removed the caller.
  const record = recordIn(host, deployment);
  const refusal = () => refusalOf(record.key);
  const events = new EventPart({
    sql: host.sql,
    record,
    client: reads,
    feeds,
    namespace: config.RESONATE_NAMESPACE,
    jobs: definitions.jobs,
    follow,
    subscribedTypes: () => hooks.types,
    pageOf: (name, caller) => pages.urlOf(name, caller),
    onNews: () => hooks.deliver(),
  });
  const watch = new Watch({
    source: config.LISTENER && createFeed(config.LISTENER as ListenerNamespace),
    key: () => record.key,
    jobs: record.jobs,
    refresher: record.refresher,
    readFeed: (job, channel) => events.readFeed(job, channel),
  });
  const schedules = schedulesIn(deployment, { host, record, feeds, refusal });
  // Listed in every configuration: it also ends the subscriptions that a deployment does not offer.
  const hooks = hooksIn(deployment, { host, record, events, follow, refusal });
  const subscriptions = () => hooks.list();
  const parts: (ObjectPart | undefined)[] = [
    record,
    events,
    watch,
    schedules,
    hooks,
    objectView({ record, hooks, events, schedules }),
    admission(refusalOf),
    filesOfForgotten(env),
    operators && new CallerUsageReporter({ host, record, operators, subscriptions, maxBytes: config.MAX_STORED_BYTES }),
    backup(host),
  ];
  return parts.filter((part) => part !== undefined);
}

function recordIn(host: RoleHost, deployment: Deployment): JobRecord {
  const { config, env, client, reads, requests, callers } = deployment;
  const list = () => callersIn(deployment).inRole<CallerListMethods>(CALLERS_ROLE);
  return new JobRecord({
    host,
    client,
    reads,
    areEndsReported: config.RESONATE !== undefined,
    namespace: config.RESONATE_NAMESPACE,
    requests,
    retentionMs: retentionOf(config.RETENTION_DAYS) ?? Number.POSITIVE_INFINITY,
    maxJobBytes: keepsFiles(env) ? Number.POSITIVE_INFINITY : MAX_JOB_BYTES,
    enlist: async (key) => callers && list().add(key),
    delist: async (key) => callers && list().forget(key),
  });
}

/** The parts that another one uses, and whether the caller is admitted. */
interface CallerParts {
  host: RoleHost;
  record: JobRecord;
  refusal(): Promise<string | undefined>;
}

function schedulesIn(
  deployment: Deployment,
  { host, record, feeds, refusal }: CallerParts & { feeds: ProgressFeeds },
): SchedulePart {
  const { config, client } = deployment;
  return new SchedulePart({
    host,
    record,
    client,
    feeds,
    namespace: config.RESONATE_NAMESPACE,
    tools: definitions.tools,
    store: storesOf(record, deployment),
    log: new EdgeLog(config.LOG_LEVEL),
    refusal,
  });
}

function hooksIn(
  { config }: Deployment,
  parts: CallerParts & { events: EventPart; follow(until: number, andFeeds: boolean): void },
): WebHookPart {
  return new WebHookPart({
    ...parts,
    codes: EVENT_ERROR_CODES[config.EVENT_ERRORS],
    encryptionKeys: config.ENCRYPTION_KEYS,
    allowsLoopback: config.ALLOW_LOOPBACK_CALLBACKS === "1",
    isServerLocal: isServerLocal(config),
    fetchTo: (url) => fetchTo(url, config),
    ownEvents: definitions.jobs.flatMap(({ events = [] }) => events.map(({ name }) => name)),
  });
}

/** The parts of the object through which operators see and act. */
async function operatorsParts(host: RoleHost, { config, env, client, callers }: Deployment): Promise<ObjectPart[]> {
  // An operator's retry counts, but no limit refuses it: bytes without a limit are 0.
  const limits = { jobs: Number.POSITIVE_INFINITY, bytes: 0 };
  const part = operatorsObject({
    sql: host.sql,
    client,
    config,
    definitions,
    env,
    cancelFeatures: [cleanUp],
    async enter(key, attempt) {
      const answer = await callers?.records(limits).of(key).reserve(startedJob(attempt, key), limits);
      if (typeof answer === "object") throw new Error(answer.refused);
    },
    fetchTo: (url) => fetchTo(url, config),
    alarmAt: await host.alarmAt(),
    arm: () => host.arm(),
  });
  return [part];
}

/** The deployment's objects. @throws {Error} if none are bound */
function callersIn({ callers }: Deployment): Callers {
  if (!callers) throw new Error("No objects are bound as CALLER.");
  return callers;
}

/** Whether callers are admitted. */
function refusalIn({ config, operators }: Deployment): RefusalOf {
  const listed = config.BLOCKED_CALLERS ?? [];
  const load = operators && (() => operators().settings());
  const settings = new OperatorSettings(load, listed, SETTINGS_CACHE_MS);
  const blocked = blockedCallers(config.auth, async () => (await settings.get()).blocked);
  return refusalBy([blocked, listedCallers(config.auth)]);
}

/** Stores of the caller for jobs that the object itself starts. `isOwn`: for the deployment's own work, which no quota counts. */
function storesOf(record: JobRecord, { config, client, operators }: Deployment): (isOwn: boolean) => RemoteStore {
  const reportStart: ReportStart | undefined = operators && startReporter(operators);
  return (isOwn) => {
    const limits = isOwn ? { jobs: 0, bytes: 0 } : { jobs: config.MAX_JOBS, bytes: config.MAX_STORED_BYTES };
    const methods = () => record.methods as never;
    const records: CallerRecords = { limits, of: (key, charge) => recordBy(methods, key, charge) };
    const features = jobFeatures({ jobs: definitions.jobs, records, areEventsWanted: () => isOwn, reportStart });
    const store = RemoteStore.of(endpointOf(config), definitions.jobs, features, { records, client });
    return store.as({ key: record.key }, crypto.randomUUID());
  };
}

/** Whether the Resonate server is on this machine or its network. */
function isServerLocal({ RESONATE, RESONATE_URL }: Config): boolean {
  return !RESONATE && !isPublicHost(new URL(RESONATE_URL).hostname);
}
