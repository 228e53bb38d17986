/** Serves operators, in one object of the deployment: an instance of the class of the callers' objects. */

import {
  type Action,
  type ActionState,
  type AuditEntry,
  type CallerUsage,
  type Filter,
  type JobFeature,
  NOTHING_PAUSED,
  type Overview,
  type Paused,
  PausedJobs,
  type RefusedRequest,
  type ServerState,
  type Settings,
  type Span,
  type WorkerReport,
} from "../../core/jobs/index.ts";
import {
  base64ToBytes,
  type ObjectSql,
  type PromiseRecord,
  type ResonateClient,
  ServerRules,
  splitKey,
} from "../../core/resonate/index.ts";
import { ACTION_WAIT_MS, Actions } from "./actions.ts";
import { AlertChecks } from "./alert-checks.ts";
import type { AuditPage, OperateCalls } from "./calls.ts";
import { noteDeployment } from "./deployment.ts";
import { NamedCallers } from "./named-callers.ts";
import type { Definitions, OperatorConfig } from "./options.ts";
import { addCharges, askServer, type Charged } from "./server-state.ts";
import { OperateTables } from "./tables.ts";

const MINUTE_MS = 60_000;

/** How long after the last report the rules are checked every minute, in milliseconds. */
const MAX_QUIET_MS = 10 * MINUTE_MS;

/** How often the rules are checked while a problem may become an alert, in milliseconds. */
const SOON_MS = 2_000;

/** How many characters of a caller's parameters the audit log keeps. */
const MAX_PARAM_CHARACTERS = 300;

export interface OperatingOptions {
  sql: ObjectSql;
  client: ResonateClient;
  config: OperatorConfig;
  definitions: Definitions;
  env: { ALERT_URL?: string; ALERT_SECRET?: string; PLAN?: string; RUNNER?: unknown; RUNS_IN?: string };
  /** What features do when a job is cancelled. */
  cancelFeatures: readonly JobFeature[];
  /** Enters an attempt that is about to be started in the record of the caller with this key. */
  enter(key: string, attempt: PromiseRecord): Promise<void>;
  fetchTo(url: string): typeof fetch;
  /** When the alarm of an earlier instance is due, in milliseconds since the epoch; null without an alarm. */
  alarmAt: number | null;
  /** Sets the object's alarm. */
  arm(): Promise<void>;
}

export class Operating implements OperateCalls {
  readonly #tables: OperateTables;
  readonly #options: OperatingOptions;
  readonly #paused: PausedJobs;
  readonly #rules: ServerRules;
  readonly #callers: NamedCallers;
  readonly #actions: Actions;
  readonly #checks: AlertChecks;
  /** The last command of each operator. */
  readonly #commands = new Map<string, { words: string; at: number }>();
  /** When the rules are checked next, in milliseconds since the epoch. */
  #checkAt: number;

  constructor(options: OperatingOptions) {
    const { client, config, definitions, sql, env, cancelFeatures } = options;
    this.#options = options;
    this.#checkAt = options.alarmAt ?? Number.POSITIVE_INFINITY;
    this.#tables = new OperateTables(sql);
    this.#paused = new PausedJobs(client, config.RESONATE_NAMESPACE);
    this.#rules = new ServerRules(client, config.RESONATE_NAMESPACE);
    this.#callers = new NamedCallers(config.auth, this.#tables);
    const parts = { tables: this.#tables, callers: this.#callers, paused: this.#paused, client, config, definitions };
    this.#actions = new Actions({
      ...parts,
      cancelFeatures,
      enter: options.enter,
      arm: () => this.#checkWithin(MINUTE_MS),
    });
    this.#checks = new AlertChecks({
      ...parts,
      env,
      fetchTo: options.fetchTo,
      named: (callers) => this.#named(callers),
    });
  }

  load(): void {
    const { config, definitions, env } = this.#options;
    // An earlier deployment may have had runners.
    if (!config.RESONATE || !env.RUNNER || env.RUNS_IN === "container")
      this.#tables.all("DELETE FROM workers WHERE worker = 'runners'");
    noteDeployment(this.#tables, definitions, config);
  }

  report(report: WorkerReport): void {
    this.#tables.report(report, Date.now());
    void this.#checkWithin(MINUTE_MS);
  }

  usage(usage: CallerUsage): void {
    this.#tables.setUsage(usage, Date.now());
    if (usage.isNews) void this.#checkWithin(SOON_MS);
  }

  started(kind: string, job: string): void {
    this.#tables.started(kind, job, Date.now());
    void this.#checkWithin(MINUTE_MS + SOON_MS);
  }

  settings(): Settings {
    return this.#actions.settings();
  }

  note(who: string, what: string, about: object): void {
    this.#tables.audit.note(who, what, about);
  }

  command(who: string, what: string, about: object): void {
    const now = Date.now();
    const words = JSON.stringify([what, about]);
    const last = this.#commands.get(who);
    this.#commands.set(who, { words, at: now });
    if (last?.words !== words || now - last.at > MINUTE_MS) this.#tables.audit.note(who, what, about);
  }

  noteCall(caller: string, what: string, params: object, isRefused = false): void {
    const { arguments: args, taskId } = params as { arguments?: unknown; taskId?: unknown };
    const { job_names, job_name, question } = Object(args);
    const named = [job_names, job_name, taskId === undefined ? undefined : nameInTask(String(taskId))];
    const jobs = named.filter((each) => each !== undefined).flat();
    this.#tables.audit.noteCall(caller, what, {
      jobs: JSON.stringify(jobs).slice(0, MAX_PARAM_CHARACTERS),
      ...(question !== undefined && { question: String(question).slice(0, MAX_PARAM_CHARACTERS) }),
      ...(isRefused && { refused: true }),
    });
  }

  async overview(span: Span): Promise<Overview> {
    const now = Date.now();
    await this.#checks.removeEndedWaits("all");
    const overview = this.#tables.overview(span, now);
    const names = [
      ...new Set([
        ...overview.kinds.map(({ kind }) => kind),
        ...this.#options.definitions.jobs.map(({ kind }) => kind),
      ]),
    ];
    const paused = await Promise.all(names.map((kind) => this.#paused.find(kind).catch(() => undefined)));
    const { paused: besidesKinds, resonate } = await this.#askServer(now);
    void this.#checks.report(await this.#checks.judge(resonate));
    return {
      ...overview,
      callers: await this.#named(overview.callers),
      kinds_paused: names.filter((_, i) => paused[i]),
      paused: besidesKinds,
      resonate,
      settings: this.settings(),
      alerts: this.#checks.alerts,
    };
  }

  jobs(filter: Filter) {
    return this.#actions.jobs(filter);
  }

  preview(filter: Filter) {
    return this.#actions.preview(filter);
  }

  async about(job: string) {
    const { key } = splitKey(job);
    return { ...this.#tables.about(job), ...(key && { caller: await this.#callers.labelOf(key) }) };
  }

  auditLog(page: AuditPage): AuditEntry[] {
    return this.#tables.audit.page(page);
  }

  act(who: string, action: Action): Promise<ActionState | RefusedRequest> {
    return this.#actions.act(who, action);
  }

  action(n: number): ActionState {
    return this.#actions.state(n);
  }

  /** Continues interrupted actions, and checks the rules for alerts. */
  async run(): Promise<void> {
    // What happens from now on may set the next time.
    this.#checkAt = Number.POSITIVE_INFINITY;
    await this.#actions.work();
    const now = Date.now();
    // If no worker reports, nothing has changed, and the server may sleep. Runners are silent while they sleep.
    const [last] = this.#tables.workers();
    const isQuiet = now - (last?.at ?? 0) > (last?.isRunner ? MINUTE_MS : MAX_QUIET_MS);
    const resonate = isQuiet ? "not called" : (await this.#askServer(now)).resonate;
    if (typeof resonate === "object") await this.#checks.removeEndedWaits("blocked");
    await this.#checks.report(await this.#checks.judge(resonate));
    await this.#checkWithin(isQuiet && !this.#tables.hasUntaken ? Number.POSITIVE_INFINITY : MINUTE_MS);
  }

  nextAt(): number {
    return this.#checkAt;
  }

  /** Has the rules checked within a time, and sooner while an action goes on or a problem may become an alert. */
  async #checkWithin(ms: number): Promise<void> {
    const at = Date.now() + (this.#actions.isBusy ? ACTION_WAIT_MS : this.#checks.isSoon ? SOON_MS : ms);
    if (at >= this.#checkAt) return;
    this.#checkAt = at;
    await this.#options.arm();
  }

  #named(callers: readonly CallerUsage[]): Promise<CallerUsage[]> {
    return Promise.all(callers.map(async (caller) => ({ ...caller, label: await this.#callers.labelOf(caller.key) })));
  }

  /** What is paused besides kinds, and the state of the Resonate server; undefined if it does not answer. */
  async #askServer(now: number): Promise<{ paused: Paused; resonate: ServerState | undefined }> {
    try {
      const begun = Date.now();
      const paused = await this.#paused.besidesKinds();
      const ms = Date.now() - begun;
      const { charges, ...about } = await askServer(this.#options.config, this.#rules);
      const charged = charges && addCharges(this.#tables.get<Charged>("charged"), charges, now);
      if (charged) this.#tables.set("charged", charged);
      const { today, yesterday } = charged ?? {};
      return { paused, resonate: { ms, ...about, ...(today && { today }), ...(yesterday && { yesterday }) } };
    } catch {
      this.#rules.reset();
      return { paused: NOTHING_PAUSED, resonate: undefined };
    }
  }
}

/** The job name in a task id that a caller has sent. */
function nameInTask(taskId: string): string {
  try {
    const encoded = (taskId.split(".", 1)[0] ?? "").replaceAll("-", "+").replaceAll("_", "/");
    return new TextDecoder().decode(base64ToBytes(encoded)).split("\n", 1)[0] ?? "";
  } catch {
    return taskId.slice(0, 100);
  }
}
