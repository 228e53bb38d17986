/** Serves operators, in one object of the deployment: an instance of the class of the callers' objects. */

import { callerOf } from "../../core/author/caller.ts";
import type { JobFeature } from "../../core/jobs/job-feature.ts";
import type {
  Action,
  ActionState,
  CallerFigure,
  Filter,
  Overview,
  ServerState,
  Settings,
  Span,
  TrailEntry,
} from "../../core/jobs/operators-api.ts";
import { NOTHING_PAUSED, type Paused, PausedJobs } from "../../core/jobs/paused-jobs.ts";
import type { WorkerReport } from "../../core/jobs/worker-report.ts";
import { base64ToBytes } from "../../core/resonate/base64.ts";
import type { ResonateClient } from "../../core/resonate/connection/client.ts";
import { ServerRules } from "../../core/resonate/connection/server-rules.ts";
import { splitKey } from "../../core/resonate/ids.ts";
import type { ObjectStorage } from "../../core/resonate/object-storage.ts";
import { Actions, PATIENCE, withKeys } from "./actions.ts";
import { AlertChecks } from "./alert-checks.ts";
import type { OperateCalls, TrailPage } from "./calls.ts";
import { noteDeployment } from "./deployment.ts";
import type { Deployed, OperatorConfig } from "./options.ts";
import { addCharges, askServer, type Charged } from "./server-state.ts";
import { OperateTables } from "./tables.ts";

const MINUTE = 60_000;

/** How long after the last report the rules are checked every minute, in milliseconds. */
const QUIET = 10 * MINUTE;

/** How often the rules are checked while a problem may become an alert, in milliseconds. */
const SOON = 2_000;

/** The most characters of a caller's parameters that the trail keeps. */
const MOST_HEARD = 300;

interface OperatingOptions {
  storage: ObjectStorage;
  client: ResonateClient;
  config: OperatorConfig;
  deployed: Deployed;
  env: { ALERT_URL?: string; ALERT_SECRET?: string; PLAN?: string; RUNNER?: unknown; RUNS_IN?: string };
  /** What features do when a job is cancelled. */
  cancelFeatures: readonly JobFeature[];
  fetchTo(url: string): typeof fetch;
}

export class Operating implements OperateCalls {
  readonly #tables: OperateTables;
  readonly #options: OperatingOptions;
  readonly #paused: PausedJobs;
  readonly #rules: ServerRules;
  readonly #actions: Actions;
  readonly #checks: AlertChecks;
  /** The names of static tokens by their callers' keys. */
  #labels: Promise<ReadonlyMap<string, string>> | undefined;
  /** The last command of each operator. */
  readonly #commands = new Map<string, { words: string; at: number }>();

  constructor(options: OperatingOptions) {
    const { client, config, deployed, storage, env, cancelFeatures } = options;
    this.#options = options;
    this.#tables = new OperateTables(storage);
    this.#paused = new PausedJobs(client, config.RESONATE_NAMESPACE);
    this.#rules = new ServerRules(client, config.RESONATE_NAMESPACE);
    // An earlier deployment may have had runners.
    if (!config.RESONATE || !env.RUNNER || env.RUNS_IN === "container")
      this.#tables.all("DELETE FROM workers WHERE worker = 'runners'");
    noteDeployment(this.#tables, deployed, config);
    const parts = { tables: this.#tables, paused: this.#paused, client, config, deployed };
    this.#actions = new Actions({ ...parts, cancelFeatures, arm: () => this.#arm() });
    this.#checks = new AlertChecks({
      ...{ ...parts, env, fetchTo: options.fetchTo },
      named: (callers) => this.#named(callers),
    });
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
    return this.#actions.settings();
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
    const { arguments: given, taskId } = params as { arguments?: unknown; taskId?: unknown };
    const args = Object(given);
    const named = [args.job_names, args.job_name, taskId === undefined ? undefined : nameInTask(String(taskId))];
    const jobs = named.filter((each) => each !== undefined).flat();
    this.#tables.noteCall(caller, what, {
      jobs: JSON.stringify(jobs).slice(0, MOST_HEARD),
      ...(args.question !== undefined && { question: String(args.question).slice(0, MOST_HEARD) }),
    });
  }

  async overview(span: Span): Promise<Overview> {
    const now = Date.now();
    await this.#checks.lookAtWaits("all");
    const overview = this.#tables.overview(span, now);
    const names = [
      ...new Set([...overview.kinds.map(({ kind }) => kind), ...this.#options.deployed.jobs.map(({ kind }) => kind)]),
    ];
    const paused = await Promise.all(names.map((kind) => this.#paused.find(kind).catch(() => undefined)));
    const { paused: besidesKinds, resonate } = await this.#askServer(now);
    void this.#checks.tell(await this.#checks.judge(resonate));
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

  act(who: string, action: Action): Promise<ActionState> {
    return this.#actions.act(who, action);
  }

  action(n: number): ActionState {
    return this.#actions.state(n);
  }

  /** Continues interrupted actions, and checks the rules for alerts. */
  async alarm(): Promise<void> {
    await this.#actions.work();
    const now = Date.now();
    // Where no worker reports, nothing has changed, and the server may sleep. Runners are silent while they sleep.
    const [last] = this.#tables.workers();
    const isQuiet = now - (last?.at ?? 0) > (last?.isRunner ? MINUTE : QUIET);
    const resonate = isQuiet ? "not asked" : (await this.#askServer(now)).resonate;
    if (typeof resonate === "object") await this.#checks.lookAtWaits("blocked");
    await this.#checks.tell(await this.#checks.judge(resonate));
    await this.#arm(isQuiet && !this.#tables.hasUntaken ? Number.POSITIVE_INFINITY : MINUTE);
  }

  async #arm(within = MINUTE): Promise<void> {
    const { storage } = this.#options;
    const at = Date.now() + (this.#actions.isBusy ? PATIENCE : this.#checks.isSoon ? SOON : within);
    if (at === Number.POSITIVE_INFINITY) return;
    const known = await storage.getAlarm();
    if (known === null || known > at) await storage.setAlarm(at);
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

  /** What is paused besides kinds, and the state of the Resonate server; undefined where it does not answer. */
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
