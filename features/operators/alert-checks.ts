/** Checks the rules for alerts, and reports the alerts that begin and end to the deployment's web hook. */

import {
  type Alert,
  type CallerUsage,
  isPaused,
  NOTHING_PAUSED,
  type Overview,
  type PausedJobs,
  type ServerState,
} from "../../core/jobs/index.ts";
import { getOf, type ResonateClient } from "../../core/resonate/index.ts";
import { post } from "../../functions/http/signed-post.ts";
import { ALMOST_FULL_SHARE, alertsOf, MIN_DURATION_MS } from "./alerts.ts";
import type { Definitions, OperatorConfig } from "./options.ts";
import type { OperateTables } from "./tables.ts";

/** How many waiting jobs are looked at in one go: they may have ended without a worker's report. */
const WAITS_READ_AT_ONCE = 10;

/** The alerts about the Resonate server, which stay as they are while the server is not called. */
const OF_SERVER: readonly string[] = ["no-server", "server-full", "plan-used"];

interface AlertOptions {
  tables: OperateTables;
  paused: PausedJobs;
  client: ResonateClient;
  config: OperatorConfig;
  definitions: Definitions;
  env: { ALERT_URL?: string; ALERT_SECRET?: string; PLAN?: string };
  fetchTo(url: string): typeof fetch;
  /** Adds the callers' names in the log. */
  named(callers: readonly CallerUsage[]): Promise<CallerUsage[]>;
}

/** The state of the Resonate server; undefined if it does not answer. */
type Resonate = ServerState | "not called" | undefined;
type StandingAlert = Overview["alerts"][number];
type AlertChange = StandingAlert & { state: "begun" | "over" };

export class AlertChecks {
  readonly #options: AlertOptions;
  #judging: Promise<unknown> = Promise.resolve();
  /** The rows of waiting jobs that were looked at last. */
  readonly #lastRows = { all: 0, blocked: 0 };

  constructor(options: AlertOptions) {
    this.#options = options;
  }

  /** The current alerts. */
  get alerts(): StandingAlert[] {
    return this.#options.tables.get("alerts") ?? [];
  }

  /** The problems that are alerts, or become alerts if they last. */
  get #standing(): StandingAlert[] {
    return this.#options.tables.get("standing") ?? [];
  }

  /** Whether a problem may soon become an alert. */
  get isSoon(): boolean {
    return this.#standing.length > this.alerts.length;
  }

  /** Checks the rules; resolves with the alerts that have begun or ended. Checks follow one another, each with newer data. */
  judge(resonate: Resonate): Promise<AlertChange[]> {
    const judged = this.#judging.then(() => this.#judgeAlone(resonate));
    this.#judging = judged.catch(() => {});
    return judged;
  }

  async #judgeAlone(resonate: Resonate): Promise<AlertChange[]> {
    const { config, definitions, env } = this.#options;
    const untaken = await this.#untaken(Date.now()).catch(() => []); // A server that does not answer is another alert.
    const maxBytes = config.MAX_STORED_BYTES;
    const versions = Object.fromEntries(definitions.jobs.map(({ kind, version }) => [kind, version]));
    const callers = await this.#options.named(this.#options.tables.troubled(ALMOST_FULL_SHARE * maxBytes));
    const now = Date.now();
    const { kinds, waits, workers } = this.#options.tables.overview("hour", now);
    const input = {
      now,
      kinds,
      waits,
      workers,
      untaken,
      callers,
      versions,
      maxBytes,
      resonate,
      isFree: env.PLAN !== "paid",
    };
    const known = this.alerts;
    const earlier = this.#standing;
    const sinceOf = (name: string) => earlier.find((each) => each.name === name)?.since ?? now;
    const standing = [
      ...alertsOf(input).map((alert) => ({ ...alert, since: sinceOf(alert.name) })),
      ...(resonate === "not called" ? known.filter(({ name }) => OF_SERVER.includes(name)) : []),
    ];
    const alerts = standing.filter(({ name, since }) => now - since >= (MIN_DURATION_MS[name] ?? 0));
    this.#options.tables.set("standing", standing);
    this.#options.tables.set("alerts", alerts);
    const has = (list: readonly Alert[], { name }: Alert) => list.some((each) => each.name === name);
    const begun = alerts.filter((alert) => !has(known, alert)).map((alert) => ({ ...alert, state: "begun" as const }));
    const over = known.filter((alert) => !has(alerts, alert)).map((alert) => ({ ...alert, state: "over" as const }));
    return [...begun, ...over];
  }

  /** Reports alerts to the deployment's web hook. After a failure, the next check reports them again. */
  async report(alerts: readonly AlertChange[]): Promise<void> {
    await Promise.all(alerts.map((alert) => this.#reportOne(alert)));
  }

  async #reportOne({ state, ...alert }: AlertChange): Promise<void> {
    const { env, fetchTo } = this.#options;
    const { ALERT_URL: url, ALERT_SECRET: secret } = env;
    if (!url) return;
    const runbook = `docs/operations.md#${alert.name}`;
    const body = JSON.stringify({ ...alert, state, since: new Date(alert.since).toISOString(), runbook });
    const hook = { url, secrets: secret ? [secret] : [], id: `alert_${alert.name}_${alert.since}_${state}` };
    const { ok } = await post(fetchTo(url), { ...hook, subscription: "alerts", body });
    if (ok) return;
    const others = this.alerts.filter(({ name }) => name !== alert.name);
    this.#options.tables.set("alerts", state === "begun" ? others : [...others, alert]);
  }

  /** Forgets waiting jobs that have ended. Looks at some in turn, and at further ones as long as all of these have ended. */
  async removeEndedWaits(which: "all" | "blocked"): Promise<void> {
    const { client, config } = this.#options;
    // The plus makes SQLite search by state.
    const where = which === "all" ? "rowid > ? ORDER BY rowid" : "state = 'blocked' AND +rowid > ? ORDER BY +rowid";
    for (let isOver = false; !isOver;) {
      const rows = this.#options.tables.all<{ rowid: number; job: string }>(
        `SELECT rowid, job FROM waits WHERE ${where} LIMIT ?`,
        ...[this.#lastRows[which], WAITS_READ_AT_ONCE],
      );
      this.#lastRows[which] = (rows.length === WAITS_READ_AT_ONCE && rows.at(-1)?.rowid) || 0;
      const ids = rows.map(({ job }) => config.RESONATE_NAMESPACE + job);
      const found = await Promise.allSettled(ids.map((id) => client.call(getOf(id))));
      // A job that cannot be read now may still wait.
      const ended = rows.filter((_, i) => found[i]?.status === "fulfilled" && found[i].value?.state !== "pending");
      for (const { job } of ended) this.#options.tables.forget(job);
      isOver = which === "all" || ended.length < WAITS_READ_AT_ONCE;
    }
  }

  /** The kinds with a job that waits for a worker, with their worker groups. Removes jobs that a worker has taken. */
  async #untaken(now: number): Promise<{ kind: string; group: string }[]> {
    const { client, config, definitions } = this.#options;
    const kinds = Map.groupBy(this.#options.tables.untaken(now, WAITS_READ_AT_ONCE), ({ kind }) => kind);
    const paused = kinds.size > 0 ? await this.#options.paused.besidesKinds() : NOTHING_PAUSED;
    const isUntaken = async (job: string, says: string) => {
      const id = config.RESONATE_NAMESPACE + job;
      const { status, data } = await client.send("task.get", { id }, { origin: id });
      // A job that a worker has released or lost counts as taken, unless that worker reported that it cannot run it.
      if (status === 200 && data.task.state === "pending" && (says !== "" || data.task.version === 0)) return true;
      this.#options.tables.forget(job);
      return false;
    };
    const found: { kind: string; group: string }[] = [];
    for (const [kind, jobs] of kinds) {
      const isKindPaused = (await this.#options.paused.find(kind)) !== undefined;
      let isFound = false;
      for (const { job, says } of jobs) isFound ||= !isPaused(paused, job) && (await isUntaken(job, says));
      const group = definitions.jobs.find((job) => job.kind === kind)?.group ?? config.RESONATE_GROUP;
      if (isFound && !isKindPaused) found.push({ kind, group });
    }
    return found;
  }
}
