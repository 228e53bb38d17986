/** Serves operators, in one object of the deployment: an instance of the class of the callers' objects. */

import { callerOf, keysOf } from "../../core/definitions/caller.ts";
import { type Held, isHeld, NOTHING, PausedJobs } from "../../core/jobs/operating/paused-jobs.ts";
import { retryJob } from "../../core/jobs/operating/retry.ts";
import type { WorkerReport } from "../../core/jobs/operating/worker-report.ts";
import { RemoteStore } from "../../core/jobs/remote-store.ts";
import { base64ToBytes } from "../../core/store/base64.ts";
import { getOf } from "../../core/store/codec.ts";
import type { ResonateClient } from "../../core/store/connection/client.ts";
import { endpointOf } from "../../core/store/connection/endpoint.ts";
import { ResonateRefused, ResonateUnavailable } from "../../core/store/connection/failures.ts";
import { ServerRules } from "../../core/store/connection/server-rules.ts";
import { splitKey } from "../../core/store/ids.ts";
import { jsonOf } from "../../core/store/json.ts";
import type { ObjectStorage } from "../../core/store/object-storage.ts";
import type { Config } from "../app/config.ts";
import { deployed } from "../app/deployed.ts";
import { post } from "../caller/webhooks/post.ts";
import { EdgeLog } from "../http/log.ts";
import { ALMOST, alertsOf, LASTS } from "./alerts.ts";
import type {
  Action,
  ActionState,
  Alert,
  CallerFigure,
  Filter,
  OperateCalls,
  Overview,
  Scope,
  Settings,
  Span,
  TrailEntry,
  TrailPage,
} from "./calls.ts";
import { addCharges, askServer, type Charged, type ServerState } from "./server-state.ts";
import { OperateTables } from "./tables.ts";

/** The most jobs of one action. */
const MOST_TARGETS = 10_000;

/** How many jobs an action handles at once, and how long a call waits for its action, in milliseconds. */
const AT_ONCE = 16;
const PATIENCE = 3_000;

const MINUTE = 60_000;

/** How long after the last report the rules are checked every minute, in milliseconds. */
const QUIET = 10 * MINUTE;

/** How often the rules are checked while a problem may become an alert, in milliseconds. */
const SOON = 2_000;

/** The most characters of a caller's parameters that the trail keeps. */
const MOST_HEARD = 300;

/** How many waiting jobs are looked at in one go: they may have ended without a worker's report. */
const LOOKS = 10;

/** The alerts about the Resonate server, which stay as they are while the server is not asked. */
const OF_SERVER: readonly string[] = ["no-server", "server-full", "plan-used"];

const NOT_DONE = "not done: ";

interface OperatingOptions {
  storage: ObjectStorage;
  client: ResonateClient;
  config: Config;
  env: { ALERT_URL?: string; ALERT_SECRET?: string; PLAN?: string; RUNNER?: unknown; RUNS_IN?: string };
  fetchTo(url: string): typeof fetch;
}

type ToldAlert = Overview["alerts"][number] & { state: "begun" | "over" };

export class Operating implements OperateCalls {
  readonly #tables: OperateTables;
  readonly #options: OperatingOptions;
  readonly #paused: PausedJobs;
  readonly #rules: ServerRules;
  /** The names of static tokens by their callers' keys. */
  #labels: Promise<ReadonlyMap<string, string>> | undefined;
  #working: Promise<void> | undefined;
  #judging: Promise<unknown> = Promise.resolve();
  readonly #log: EdgeLog;
  /** The last command of each operator. */
  readonly #commands = new Map<string, { words: string; at: number }>();
  /** The rows of waiting jobs that were looked at last. */
  readonly #looked = { all: 0, blocked: 0 };

  constructor(options: OperatingOptions) {
    const { client, config, storage, env } = options;
    this.#options = options;
    this.#log = new EdgeLog(config.LOG_LEVEL);
    this.#tables = new OperateTables(storage);
    this.#paused = new PausedJobs(client, config.RESONATE_NAMESPACE);
    this.#rules = new ServerRules(client, config.RESONATE_NAMESPACE);
    // An earlier deployment may have had runners.
    if (!config.RESONATE || !env.RUNNER || env.RUNS_IN === "container")
      this.#tables.all("DELETE FROM workers WHERE worker = 'runners'");
    this.#noteDeployment();
  }

  report(report: WorkerReport): void {
    this.#tables.report(report, Date.now());
    void this.#arm();
  }

  figure(figure: CallerFigure): void {
    this.#tables.figure(figure, Date.now());
    if (figure.isNews) void this.#arm(SOON);
  }

  started(kind: string, job: string): void {
    this.#tables.started(kind, job, Date.now());
    void this.#arm(MINUTE + SOON);
  }

  settings(): Settings {
    return this.#tables.get<Settings>("settings") ?? { starts_stopped: false, blocked: [] };
  }

  note(who: string, what: string, about: object): void {
    this.#tables.note(who, what, about);
  }

  command(who: string, what: string, about: object): void {
    const now = Date.now();
    const words = JSON.stringify([what, about]);
    const last = this.#commands.get(who);
    this.#commands.set(who, { words, at: now });
    if (last?.words !== words || now - last.at > MINUTE) this.#tables.note(who, what, about);
  }

  heard(caller: string, what: string, params: object): void {
    const { arguments: args = {}, taskId } = params as { arguments?: Record<string, unknown>; taskId?: unknown };
    const named = [args.job_names, args.job_name, taskId === undefined ? undefined : nameInTask(String(taskId))];
    const jobs = named.filter((each) => each !== undefined).flat();
    this.#tables.noteCall(caller, what, {
      jobs: JSON.stringify(jobs).slice(0, MOST_HEARD),
      ...(args.question !== undefined && { question: String(args.question).slice(0, MOST_HEARD) }),
    });
  }

  async overview(span: Span): Promise<Overview> {
    const now = Date.now();
    await this.#lookAtWaits("all");
    const overview = this.#tables.overview(span, now);
    const names = [...new Set([...overview.kinds.map(({ kind }) => kind), ...deployed.jobs.map(({ kind }) => kind)])];
    const paused = await Promise.all(names.map((kind) => this.#paused.find(kind).catch(() => undefined)));
    const { held, resonate } = await this.#askServer(now);
    const news = await this.#judge(resonate);
    void Promise.all(news.map((each) => this.#tell(each)));
    return {
      ...overview,
      callers: await this.#named(overview.callers),
      kinds_paused: names.filter((_, i) => paused[i]),
      held,
      resonate,
      settings: this.settings(),
      alerts: this.#tables.get<Overview["alerts"]>("alerts") ?? [],
    };
  }

  async jobs(filter: Filter) {
    return this.#tables.jobs(await withKeys(filter), 50);
  }

  async about(job: string) {
    const { key } = splitKey(job);
    return { ...this.#tables.about(job), ...(key && { caller: await this.#labelOf(key) }) };
  }

  trail(page: TrailPage): TrailEntry[] {
    return this.#tables.trail(page);
  }

  /** Stores an action and its jobs, and then does it. The next alarm continues an interrupted action. */
  async act(who: string, action: Action): Promise<ActionState> {
    const jobs = "jobs" in action || "filter" in action ? await this.#targetsOf(action) : [];
    const tables = this.#tables;
    const n = tables.transaction(() => {
      const { do: what, ...about } = action;
      const n = tables.note(who, what, { ...about, ...(jobs.length > 0 && { count: jobs.length }) });
      tables.all("INSERT INTO actions VALUES (?, ?, ?, 'open')", n, who, JSON.stringify(action));
      for (const job of jobs) tables.all("INSERT OR IGNORE INTO targets VALUES (?, ?, NULL)", n, job);
      // Settings, which only this object keeps, apply at once: in an incident the Resonate server may be unavailable.
      if (this.#set(action)) this.#end(n, who, action);
      return n;
    });
    await this.#arm();
    await Promise.race([this.#work(), new Promise((resolve) => setTimeout(resolve, PATIENCE))]);
    return this.action(n);
  }

  action(n: number): ActionState {
    const [{ total, done } = { total: 0, done: 0 }] = this.#tables.all<{ total: number; done: number }>(
      "SELECT count(*) AS total, count(outcome) AS done FROM targets WHERE action = ?",
      n,
    );
    const [row] = this.#tables.all<{ state: string; what: string }>(
      "SELECT state, json_extract(asked, '$.do') AS what FROM actions WHERE n = ?",
      n,
    );
    const outcomes = this.#tables.all<{ job: string; outcome: string }>(
      "SELECT job, outcome FROM targets WHERE action = ? AND outcome NOTNULL LIMIT 50",
      n,
    );
    if (row && row.state !== "open" && row.state !== "done") outcomes.push({ job: row.what, outcome: row.state });
    return {
      ...{ n, total, done, is_over: row?.state !== "open" },
      outcomes: Object.fromEntries(outcomes.map(({ job, outcome }) => [job, outcome])),
    };
  }

  /** Continues interrupted actions, and checks the rules for alerts. */
  async alarm(): Promise<void> {
    await this.#work();
    const now = Date.now();
    // Where no worker reports, nothing has changed, and the server may sleep. Runners are silent while they sleep.
    const [last] = this.#tables.workers();
    const isQuiet = now - (last?.at ?? 0) > (last?.isRunner ? MINUTE : QUIET);
    const resonate = isQuiet ? "not asked" : (await this.#askServer(now)).resonate;
    if (typeof resonate === "object") await this.#lookAtWaits("blocked");
    await Promise.all((await this.#judge(resonate)).map((each) => this.#tell(each)));
    await this.#arm(isQuiet && !this.#tables.hasUntaken ? Number.POSITIVE_INFINITY : MINUTE);
  }

  async #arm(within = MINUTE): Promise<void> {
    const { storage } = this.#options;
    const isBusy = this.#tables.all("SELECT 1 FROM actions WHERE state = 'open' LIMIT 1").length > 0;
    const lengthOf = (list: string) => this.#tables.get<unknown[]>(list)?.length ?? 0;
    const isSoon = lengthOf("standing") > lengthOf("alerts");
    const at = Date.now() + (isBusy ? PATIENCE : isSoon ? SOON : within);
    if (at === Number.POSITIVE_INFINITY) return;
    const known = await storage.getAlarm();
    if (known === null || known > at) await storage.setAlarm(at);
  }

  async #targetsOf({ jobs, filter = {} }: { jobs?: string[]; filter?: Filter }): Promise<string[]> {
    return jobs ?? this.#tables.jobs(await withKeys(filter), MOST_TARGETS).jobs.map(({ job }) => String(job));
  }

  /** Does the open actions. After a failure the next alarm continues. */
  #work(): Promise<void> {
    this.#working ??= this.#workOff()
      .catch((error) => {
        const reason = error instanceof ResonateUnavailable ? error.message : this.#log.describe(error);
        this.#log.warn("operators' actions wait", { reason });
      })
      .finally(() => {
        this.#working = undefined;
      });
    return this.#working;
  }

  async #workOff(): Promise<void> {
    for (;;) {
      // In an incident a pause must not wait for the end of a long action on jobs.
      const [row] = this.#tables.all<{ n: number; who: string; asked: string }>(
        "SELECT n, who, asked FROM actions WHERE state = 'open' ORDER BY json_extract(asked, '$.do') IN ('retry', 'cancel'), n LIMIT 1",
      );
      if (!row) return;
      const { n, who } = row;
      const action: Action = JSON.parse(row.asked);
      const isOnJobs = action.do === "retry" || action.do === "cancel";
      if (isOnJobs && !(await this.#workOn(n, action))) continue;
      const reason =
        action.do === "pause" || action.do === "resume"
          ? await this.#hold(action.of, action.do === "pause").then(() => undefined, lastingReason)
          : undefined;
      this.#tables.transaction(() => this.#end(n, who, action, reason));
    }
  }

  /** Notes that an action is done, or for which reason it is not. */
  #end(n: number, who: string, action: Action, reason?: string): void {
    const jobs = this.action(n).total;
    const about = { of: n, ...(jobs > 0 && { jobs }), ...(reason !== undefined && { reason }) };
    this.#tables.note(who, `${action.do}: ${reason === undefined ? "done" : "not done"}`, about);
    this.#tables.all("UPDATE actions SET state = ? WHERE n = ?", reason === undefined ? "done" : NOT_DONE + reason, n);
  }

  /**
   * Does an action for some of its jobs that have no outcome yet, and returns whether none are left. To do it twice for a job has
   * no further effect.
   */
  async #workOn(n: number, action: Extract<Action, { do: "retry" | "cancel" }>): Promise<boolean> {
    const open = "SELECT job FROM targets WHERE action = ? AND outcome IS NULL LIMIT ?";
    const jobs = this.#tables.all<{ job: string }>(open, n, AT_ONCE).map(({ job }) => job);
    const does = (job: string) =>
      action.do === "retry" ? this.#retry(job, action.from === "start") : this.#cancel(job);
    const ends = await Promise.allSettled(
      jobs.map((job) => does(job).catch((error) => NOT_DONE + lastingReason(error))),
    );
    this.#tables.transaction(() => {
      for (const [i, job] of jobs.entries()) {
        const end = ends[i];
        if (end?.status !== "fulfilled") continue;
        this.#tables.all("UPDATE targets SET outcome = ? WHERE action = ? AND job = ?", end.value, n, job);
        if (end.value.startsWith(NOT_DONE)) continue;
        if (action.do === "cancel") this.#tables.forget(job);
        else this.#tables.all("DELETE FROM failures WHERE job = ?", job);
      }
    });
    const failed = ends.find((end) => end.status === "rejected");
    if (failed) throw failed.reason;
    return jobs.length === 0;
  }

  #retry(job: string, isFromStart: boolean): Promise<string> {
    const { client, config } = this.#options;
    return retryJob({ client, namespace: config.RESONATE_NAMESPACE }, job, isFromStart);
  }

  async #cancel(job: string): Promise<string> {
    const { key, name } = splitKey(job);
    const { client, config } = this.#options;
    const store = new RemoteStore(endpointOf(config), deployed.jobs, {}, client).as({ id: "", key, label: "" }, "");
    const ended = await store.end(name);
    if (!ended) return "there is no such job";
    return ended.isOurs || ended.promise.state === "rejected_canceled" ? "it is cancelled" : "it had ended";
  }

  /** Changes the settings of the edges; returns whether the action does that. */
  #set(action: Action): boolean {
    const settings = this.settings();
    switch (action.do) {
      case "block":
      case "unblock": {
        const others = settings.blocked.filter((name) => name !== action.caller);
        const blocked = action.do === "block" ? [...others, action.caller] : others;
        this.#tables.set("settings", { ...settings, blocked });
        return true;
      }
      case "stop-starts":
      case "allow-starts":
        this.#tables.set("settings", { ...settings, starts_stopped: action.do === "stop-starts" });
        return true;
      default:
        return false;
    }
  }

  async #hold(of: Scope, isOn: boolean): Promise<void> {
    if ("kind" in of) {
      await (isOn ? this.#paused.pause(of.kind) : this.#paused.resume(of.kind));
      return;
    }
    const held = await this.#paused.held();
    const changed = (all: readonly string[], some: readonly string[]) => {
      const others = all.filter((each) => !some.includes(each));
      return isOn ? [...others, ...some] : others;
    };
    if ("all" in of) return this.#paused.hold({ ...held, all: isOn });
    if ("caller" in of) {
      return this.#paused.hold({ ...held, callers: changed(held.callers, await keysIn(of.caller)) });
    }
    return this.#paused.hold({ ...held, jobs: changed(held.jobs, of.jobs) });
  }

  #named(callers: readonly CallerFigure[]): Promise<CallerFigure[]> {
    return Promise.all(callers.map(async (caller) => ({ ...caller, label: await this.#labelOf(caller.key) })));
  }

  /** The name of a caller in the log: that of its static token, or the hash in its key. */
  async #labelOf(key: string): Promise<string> {
    const { auth } = this.#options.config;
    const tokens = auth.AUTH_MODE === "bearer" ? auth.BEARER_TOKENS : [];
    this.#labels ??= Promise.all(tokens.map(async ({ name }) => [(await callerOf(name)).key, name] as const)).then(
      (labels) => new Map(labels),
    );
    return (await this.#labels).get(key) ?? key.slice(1, -1);
  }

  /** Forgets waiting jobs that have ended. Looks at some in turn, and at further ones as long as all of these have ended. */
  async #lookAtWaits(which: "all" | "blocked"): Promise<void> {
    const { client, config } = this.#options;
    // The plus makes SQLite search by state.
    const where = which === "all" ? "rowid > ? ORDER BY rowid" : "state = 'blocked' AND +rowid > ? ORDER BY +rowid";
    for (let isOver = false; !isOver; ) {
      const rows = this.#tables.all<{ rowid: number; job: string }>(
        `SELECT rowid, job FROM waits WHERE ${where} LIMIT ?`,
        ...[this.#looked[which], LOOKS],
      );
      this.#looked[which] = (rows.length === LOOKS && rows.at(-1)?.rowid) || 0;
      const ids = rows.map(({ job }) => config.RESONATE_NAMESPACE + job);
      const found = await Promise.allSettled(ids.map((id) => client.call(getOf(id))));
      // A job that cannot be read now may still wait.
      const ended = rows.filter((_, i) => found[i]?.status === "fulfilled" && found[i].value?.state !== "pending");
      for (const { job } of ended) this.#tables.forget(job);
      isOver = which === "all" || ended.length < LOOKS;
    }
  }

  /** The kinds with a job that waits for a worker, with their worker groups. Removes jobs that a worker has taken. */
  async #untaken(now: number): Promise<{ kind: string; group: string }[]> {
    const { client, config } = this.#options;
    const kinds = Map.groupBy(this.#tables.untaken(now, LOOKS), ({ kind }) => kind);
    const held = kinds.size > 0 ? await this.#paused.held() : NOTHING;
    const isUntaken = async (job: string, says: string) => {
      const id = config.RESONATE_NAMESPACE + job;
      const { status, data } = await client.send("task.get", { id }, { origin: id });
      // A job that a worker has released or lost counts as taken, unless that worker reported that it cannot run it.
      if (status === 200 && data.task.state === "pending" && (says !== "" || data.task.version === 0)) return true;
      this.#tables.forget(job);
      return false;
    };
    const found: { kind: string; group: string }[] = [];
    for (const [kind, jobs] of kinds) {
      const isPaused = (await this.#paused.find(kind)) !== undefined;
      let isFound = false;
      for (const { job, says } of jobs) isFound ||= !isHeld(held, job) && (await isUntaken(job, says));
      const group = deployed.jobs.find((job) => job.kind === kind)?.group ?? config.RESONATE_GROUP;
      if (isFound && !isPaused) found.push({ kind, group });
    }
    return found;
  }

  /** What is held, and the state of the Resonate server; undefined where it does not answer. */
  async #askServer(now: number): Promise<{ held: Held; resonate: ServerState | undefined }> {
    try {
      const begun = Date.now();
      const held = await this.#paused.held();
      const ms = Date.now() - begun;
      const { charges, ...about } = await askServer(this.#options.config, this.#rules);
      const charged = charges && addCharges(this.#tables.get<Charged>("charged"), charges, now);
      if (charged) this.#tables.set("charged", charged);
      const { today, yesterday } = charged ?? {};
      return { held, resonate: { ms, ...about, ...(today && { today }), ...(yesterday && { yesterday }) } };
    } catch {
      this.#rules.reset();
      return { held: NOTHING, resonate: undefined };
    }
  }

  /** Checks the rules; resolves with the alerts that have begun or ended. Checks follow one another, each with newer figures. */
  #judge(resonate: ServerState | "not asked" | undefined): Promise<ToldAlert[]> {
    const judged = this.#judging.then(() => this.#judgeAlone(resonate));
    this.#judging = judged.catch(() => {});
    return judged;
  }

  async #judgeAlone(resonate: ServerState | "not asked" | undefined): Promise<ToldAlert[]> {
    const { config, env } = this.#options;
    const untaken = await this.#untaken(Date.now()).catch(() => []); // A server that does not answer is another alert.
    const mostBytes = config.MAX_STORED_BYTES;
    const versions = Object.fromEntries(deployed.jobs.map(({ kind, version }) => [kind, version]));
    const callers = await this.#named(this.#tables.troubled(ALMOST * mostBytes));
    const now = Date.now();
    const { kinds, waits, workers } = this.#tables.overview("hour", now);
    const seen = {
      now,
      kinds,
      waits,
      workers,
      untaken,
      callers,
      deployed: versions,
      mostBytes,
      resonate,
      isFree: env.PLAN !== "paid",
    };
    const known = this.#tables.get<Overview["alerts"]>("alerts") ?? [];
    const stood = this.#tables.get<Overview["alerts"]>("standing") ?? [];
    const sinceOf = (name: string) => stood.find((each) => each.name === name)?.since ?? now;
    const standing = [
      ...alertsOf(seen).map((alert) => ({ ...alert, since: sinceOf(alert.name) })),
      ...(resonate === "not asked" ? known.filter(({ name }) => OF_SERVER.includes(name)) : []),
    ];
    const alerts = standing.filter(({ name, since }) => now - since >= (LASTS[name] ?? 0));
    this.#tables.set("standing", standing);
    this.#tables.set("alerts", alerts);
    const has = (list: readonly Alert[], { name }: Alert) => list.some((each) => each.name === name);
    const begun = alerts.filter((alert) => !has(known, alert)).map((alert) => ({ ...alert, state: "begun" as const }));
    const over = known.filter((alert) => !has(alerts, alert)).map((alert) => ({ ...alert, state: "over" as const }));
    return [...begun, ...over];
  }

  /** Reports an alert to the deployment's web hook. After a failure, the next check reports it again. */
  async #tell({ state, ...alert }: ToldAlert): Promise<void> {
    const { env, fetchTo } = this.#options;
    const { ALERT_URL: url, ALERT_SECRET: secret } = env;
    if (!url) return;
    const runbook = `docs/operations.md#${alert.name}`;
    const body = JSON.stringify({ ...alert, state, since: new Date(alert.since).toISOString(), runbook });
    const hook = { url, secrets: secret ? [secret] : [], id: `alert_${alert.name}_${alert.since}_${state}` };
    const { ok } = await post(fetchTo(url), { ...hook, subscription: "alerts", body });
    if (ok) return;
    const others = (this.#tables.get<Overview["alerts"]>("alerts") ?? []).filter(({ name }) => name !== alert.name);
    this.#tables.set("alerts", state === "begun" ? others : [...others, alert]);
  }

  /** Notes in the trail which tokens and tools a deployment has changed, and who accepted the lists of its wrapped servers. */
  #noteDeployment(): void {
    const { auth, isOperated, OPERATOR_TOKENS, OAUTH_OPERATE_SCOPE } = this.#options.config;
    if (!isOperated) return;
    for (const { by, ...about } of new Set(deployed.tools.flatMap(({ acceptances = [] }) => acceptances))) {
      const last = `accepted of ${about.server}`;
      if (about.at <= (this.#tables.get<string>(last) ?? "")) continue;
      this.#tables.set(last, about.at);
      this.#tables.note(by, "list of tools accepted", about);
    }
    const listed = jsonOf(OPERATOR_TOKENS ?? "");
    const wordsOf = ({ name, sha256 }: { name: string; sha256: string }) => `${name} ${String(sha256).slice(0, 8)}`;
    const now: Record<string, string[]> = {
      callers: auth.AUTH_MODE === "bearer" ? auth.BEARER_TOKENS.map(wordsOf) : [],
      operators: [
        ...(Array.isArray(listed) ? listed.map(wordsOf) : []),
        ...(OAUTH_OPERATE_SCOPE ? [`scope ${OAUTH_OPERATE_SCOPE}`] : []),
      ],
      tools: deployed.tools.map(({ listing }) => String(listing.name)),
    };
    const before = this.#tables.get<typeof now>("deployment");
    if (JSON.stringify(before) === JSON.stringify(now)) return;
    this.#tables.set("deployment", now);
    for (const [what, names] of Object.entries(now)) {
      const old = before?.[what];
      const [added, removed] = [
        names.filter((each) => !old?.includes(each)),
        old?.filter((each) => !names.includes(each)) ?? [],
      ];
      if (old && added.length + removed.length > 0)
        this.#tables.note("deployment", `${what} changed`, { added, removed });
    }
  }
}

/** The reason of an error that recurs in each attempt. @throws the error, if the server or the deployment's token is the cause */
function lastingReason(error: unknown): string {
  const isOfToken = error instanceof ResonateRefused && (error.status === 401 || error.status === 403);
  if (error instanceof ResonateUnavailable && (isOfToken || !(error instanceof ResonateRefused))) throw error;
  return error instanceof Error ? error.message : String(error);
}

/** The keys of a caller, who is given by a key or by a name in the log. */
const keysIn = async (caller: string) => (splitKey(caller).key ? [caller] : keysOf(caller));

const withKeys = async ({ caller, ...filter }: Filter) => ({
  ...filter,
  ...(caller !== undefined && { callers: await keysIn(caller) }),
});

/** The job name in a task id that a caller has sent. */
function nameInTask(taskId: string): string {
  try {
    const encoded = (taskId.split(".", 1)[0] ?? "").replaceAll("-", "+").replaceAll("_", "/");
    return new TextDecoder().decode(base64ToBytes(encoded)).split("\n", 1)[0] ?? "";
  } catch {
    return taskId.slice(0, 100);
  }
}
