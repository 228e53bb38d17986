/** What operators do to jobs, kinds and callers: stored, done, and continued after an interruption. */

import {
  type Action,
  type ActionState,
  type Filter,
  type FoundJobs,
  type JobFeature,
  type PausedJobs,
  type Preview,
  type RefusedRequest,
  RemoteStore,
  retryJob,
  type Scope,
  type Settings,
} from "../../core/jobs/index.ts";
import {
  endpointOf,
  type ResonateClient,
  ResonateRefused,
  ResonateUnavailable,
  splitKey,
} from "../../core/resonate/index.ts";
import { EdgeLog } from "../../functions/http/log.ts";
import type { NamedCallers } from "./named-callers.ts";
import type { Definitions, OperatorConfig } from "./options.ts";
import type { OperateTables, TableFilter } from "./tables.ts";

/** The largest number of jobs of one action, and how many characters their names have together: they are stored as one text. */
const MAX_TARGETS = 10_000;
const MAX_TARGET_CHARACTERS = 1_500_000;

/** How many jobs of a filter are shown. */
const MAX_SHOWN = 50;

/** How many jobs an action handles at once. */
const JOBS_AT_ONCE = 16;

/** How long a call waits for its action, and the pause before an action continues, in milliseconds. */
export const ACTION_WAIT_MS = 3_000;

const NOT_DONE = "not done: ";

interface ActionsOptions {
  tables: OperateTables;
  callers: NamedCallers;
  paused: PausedJobs;
  client: ResonateClient;
  config: OperatorConfig;
  definitions: Definitions;
  /** What features do when a job is cancelled. */
  cancelFeatures: readonly JobFeature[];
  /** Sets the object's alarm. */
  arm(): Promise<void>;
}

export class Actions {
  readonly #options: ActionsOptions;
  #working: Promise<void> | undefined;

  constructor(options: ActionsOptions) {
    this.#options = options;
  }

  /** Whether an action has further work. */
  get isBusy(): boolean {
    return this.#options.tables.all("SELECT 1 FROM actions WHERE state = 'open' LIMIT 1").length > 0;
  }

  settings(): Settings {
    return this.#options.tables.get<Settings>("settings") ?? { starts_stopped: false, blocked: [] };
  }

  /** The newest jobs of a filter, and how many there are. */
  async jobs(filter: Filter): Promise<FoundJobs | RefusedRequest> {
    const wanted = await this.#keyed(filter);
    return "refused" in wanted ? wanted : this.#options.tables.jobs(wanted, MAX_SHOWN);
  }

  /** Stores which jobs a filter finds, for an action on these. */
  async preview(filter: Filter): Promise<Preview | RefusedRequest> {
    const wanted = await this.#keyed(filter);
    if ("refused" in wanted) return wanted;
    const { tables } = this.#options;
    return tables.transaction(() => {
      const { count, jobs } = tables.jobs(wanted, MAX_TARGETS);
      let characters = 0;
      const names = jobs.map(({ job }) => job);
      const targets = names.filter((job) => (characters += job.length + 3) <= MAX_TARGET_CHARACTERS);
      const preview = tables.previews.add(filter, targets, Date.now());
      return { preview, count, targets: targets.length, jobs: jobs.slice(0, MAX_SHOWN) };
    });
  }

  async #keyed({ caller, ...filter }: Filter): Promise<TableFilter | RefusedRequest> {
    if (caller === undefined) return filter;
    const found = await this.#options.callers.find(caller);
    return "refused" in found ? found : { ...filter, key: found.key };
  }

  /** Stores an action and its jobs, and then does it. The next alarm continues an interrupted action. */
  async act(who: string, request: Action): Promise<ActionState | RefusedRequest> {
    const { tables } = this.#options;
    const action = await this.#resolved(request);
    if ("refused" in action) return action;
    const preview = "preview" in action ? tables.previews.get(action.preview, Date.now()) : undefined;
    if ("preview" in action && !preview)
      return { refused: `There is no preview ${action.preview} any more: make another, and look at its jobs.` };
    const jobs = "jobs" in action ? action.jobs : (preview?.jobs ?? []);
    const n = tables.transaction(() => {
      const { do: what, ...about } = request;
      const found = preview && { filter: preview.filter };
      const n = tables.audit.note(who, what, { ...about, ...found, ...(jobs.length > 0 && { count: jobs.length }) });
      tables.all("INSERT INTO actions VALUES (?, ?, ?, 'open')", n, who, JSON.stringify(action));
      for (const job of jobs) tables.all("INSERT OR IGNORE INTO targets VALUES (?, ?, NULL)", n, job);
      // Settings, which only this object keeps, apply at once: in an incident the Resonate server may be unavailable.
      if (this.#set(action)) this.#end(n, who, action);
      return n;
    });
    await this.#options.arm();
    await Promise.race([this.work(), new Promise((resolve) => setTimeout(resolve, ACTION_WAIT_MS))]);
    return this.state(n);
  }

  /** The action with the callers that it names: in the settings by their names in the log, in pauses by their keys. */
  async #resolved(action: Action): Promise<Action | RefusedRequest> {
    switch (action.do) {
      case "unblock":
        return this.settings().blocked.includes(action.caller) ? action : this.#named(action);
      case "block":
        return this.#named(action);
      case "resume":
      case "pause": {
        const { of } = action;
        // A page names a paused caller by its key, which may have no token or job any more.
        if (!("caller" in of) || (action.do === "resume" && splitKey(of.caller).key === of.caller)) return action;
        const found = await this.#options.callers.find(of.caller);
        return "refused" in found ? found : { do: action.do, of: { caller: found.key } };
      }
      default:
        return action;
    }
  }

  async #named(action: Extract<Action, { do: "block" | "unblock" }>): Promise<Action | RefusedRequest> {
    const found = await this.#options.callers.find(action.caller);
    if ("refused" in found) return found;
    const { blocked } = this.settings();
    if (action.do === "unblock" && !blocked.includes(found.label))
      return { refused: `${found.label} is not blocked here. Blocked are: ${blocked.join(", ") || "none"}.` };
    return { do: action.do, caller: found.label };
  }

  state(n: number): ActionState {
    const [{ total, done } = { total: 0, done: 0 }] = this.#options.tables.all<{ total: number; done: number }>(
      "SELECT count(*) AS total, count(outcome) AS done FROM targets WHERE action = ?",
      n,
    );
    const [row] = this.#options.tables.all<{ state: string; what: string }>(
      "SELECT state, json_extract(action, '$.do') AS what FROM actions WHERE n = ?",
      n,
    );
    const outcomes = this.#options.tables.all<{ job: string; outcome: string }>(
      "SELECT job, outcome FROM targets WHERE action = ? AND outcome NOTNULL LIMIT 50",
      n,
    );
    if (row && row.state !== "open" && row.state !== "done") outcomes.push({ job: row.what, outcome: row.state });
    return {
      n,
      total,
      done,
      is_over: row?.state !== "open",
      outcomes: Object.fromEntries(outcomes.map(({ job, outcome }) => [job, outcome])),
    };
  }

  /** Does the open actions. After a failure the next alarm continues. */
  work(): Promise<void> {
    this.#working ??= this.#workOff()
      .catch((error) => {
        const log = new EdgeLog(this.#options.config.LOG_LEVEL);
        const reason = error instanceof ResonateUnavailable ? error.message : log.describe(error);
        log.warn("operators' actions wait", { reason });
      })
      .finally(() => {
        this.#working = undefined;
      });
    return this.#working;
  }

  async #workOff(): Promise<void> {
    for (;;) {
      // In an incident a pause must not wait for the end of a long action on jobs.
      const [row] = this.#options.tables.all<{ n: number; who: string; action: string }>(
        "SELECT n, who, action FROM actions WHERE state = 'open' ORDER BY json_extract(action, '$.do') IN ('retry', 'cancel'), n LIMIT 1",
      );
      if (!row) return;
      const { n, who } = row;
      const action: Action = JSON.parse(row.action);
      const isOnJobs = action.do === "retry" || action.do === "cancel";
      if (isOnJobs && !(await this.#workOn(n, action))) continue;
      const reason =
        action.do === "pause" || action.do === "resume"
          ? await this.#setPaused(action.of, action.do === "pause").then(() => undefined, lastingReason)
          : undefined;
      this.#options.tables.transaction(() => this.#end(n, who, action, reason));
    }
  }

  /** Notes that an action is done, or for which reason it is not. */
  #end(n: number, who: string, action: Action, reason?: string): void {
    const jobs = this.state(n).total;
    const about = { of: n, ...(jobs > 0 && { jobs }), ...(reason !== undefined && { reason }) };
    this.#options.tables.audit.note(who, `${action.do}: ${reason === undefined ? "done" : "not done"}`, about);
    this.#options.tables.all(
      "UPDATE actions SET state = ? WHERE n = ?",
      reason === undefined ? "done" : NOT_DONE + reason,
      n,
    );
  }

  /**
   * Does an action for some of its jobs that have no outcome yet, and returns whether none are left. To do it twice for a job has
   * no further effect.
   */
  async #workOn(n: number, action: Extract<Action, { do: "retry" | "cancel" }>): Promise<boolean> {
    const open = "SELECT job FROM targets WHERE action = ? AND outcome IS NULL LIMIT ?";
    const jobs = this.#options.tables.all<{ job: string }>(open, n, JOBS_AT_ONCE).map(({ job }) => job);
    const { client, config } = this.#options;
    const server = { client, namespace: config.RESONATE_NAMESPACE };
    const does = (job: string) =>
      action.do === "retry" ? retryJob(server, job, action.from === "start") : this.#cancel(job);
    const ends = await Promise.allSettled(
      jobs.map((job) => does(job).catch((error) => NOT_DONE + lastingReason(error))),
    );
    this.#options.tables.transaction(() => {
      for (const [i, job] of jobs.entries()) {
        const end = ends[i];
        if (end?.status !== "fulfilled") continue;
        this.#options.tables.all("UPDATE targets SET outcome = ? WHERE action = ? AND job = ?", end.value, n, job);
        if (end.value.startsWith(NOT_DONE)) continue;
        if (action.do === "cancel") this.#options.tables.forget(job);
        else this.#options.tables.all("DELETE FROM failures WHERE job = ?", job);
      }
    });
    const failed = ends.find((end) => end.status === "rejected");
    if (failed) throw failed.reason;
    return jobs.length === 0;
  }

  async #cancel(job: string): Promise<string> {
    const { key, name } = splitKey(job);
    const { client, config, definitions, cancelFeatures } = this.#options;
    const store = RemoteStore.of(endpointOf(config), definitions.jobs, cancelFeatures, { client }).as({ key }, "");
    const promise = await store.get(name);
    const ended = promise && (await store.end(promise));
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
        this.#options.tables.set("settings", { ...settings, blocked });
        return true;
      }
      case "stop-starts":
      case "allow-starts":
        this.#options.tables.set("settings", { ...settings, starts_stopped: action.do === "stop-starts" });
        return true;
      default:
        return false;
    }
  }

  async #setPaused(of: Scope, isOn: boolean): Promise<void> {
    if ("kind" in of) {
      await (isOn ? this.#options.paused.pause(of.kind) : this.#options.paused.resume(of.kind));
      return;
    }
    const paused = await this.#options.paused.besidesKinds();
    const changed = (all: readonly string[], some: readonly string[]) => {
      const others = all.filter((each) => !some.includes(each));
      return isOn ? [...others, ...some] : others;
    };
    if ("all" in of) return this.#options.paused.pauseBesidesKinds({ ...paused, all: isOn });
    if ("caller" in of) {
      return this.#options.paused.pauseBesidesKinds({
        ...paused,
        callers: changed(paused.callers, [of.caller]),
      });
    }
    return this.#options.paused.pauseBesidesKinds({ ...paused, jobs: changed(paused.jobs, of.jobs) });
  }
}

/** The reason of an error that recurs in each attempt. @throws the error, if the server or the deployment's token is the cause */
function lastingReason(error: unknown): string {
  const isOfToken = error instanceof ResonateRefused && (error.status === 401 || error.status === 403);
  if (error instanceof ResonateUnavailable && (isOfToken || !(error instanceof ResonateRefused))) throw error;
  return error instanceof Error ? error.message : String(error);
}
