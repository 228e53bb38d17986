/** The clients of a run: they start, cancel, answer and collect jobs, despite all disruptions. */
import type { McpClient } from "../support/clients.ts";
import { type Calls, RunOver } from "./calls.ts";
import type { ClientLog, Ending, Wanted } from "./client-log.ts";
import { monthName, rangeName, timerName } from "./names.ts";
import type { PlannedJob, Reply } from "./plan.ts";

/** How often a client looks at jobs of all clients, in milliseconds; how many it looks at, and how many it waits for, at once. */
const LOOK_EVERY = 400;
const LOOK_AT = 25;
const WAIT_FOR = 5;

const ANSWERS = {
  accept: { action: "accept", content: { confirm: true } },
  accept_no: { action: "accept", content: { confirm: false } },
  decline: { action: "decline" },
  cancel: { action: "cancel" },
} as const;

export interface ClientsOptions {
  calls: Calls;
  log: ClientLog;
  /** Clients of both revisions. */
  clients: readonly McpClient[];
}

export class Clients {
  readonly #calls: Calls;
  readonly #log: ClientLog;
  readonly #clients: readonly McpClient[];
  #turn = 0;

  constructor({ calls, log, clients }: ClientsOptions) {
    this.#calls = calls;
    this.#log = log;
    this.#clients = clients;
  }

  /** Runs the plan for one job; resolves when all its calls were answered. */
  async drive(job: PlannedJob): Promise<void> {
    switch (job.kind) {
      case "gathering":
        return this.#startAndCancel(job, monthName(job.args), "start_gathering");
      case "timer":
        return this.#startAndCancel(job, timerName(job.args), "set_timer");
      case "refused":
        return this.#startTwice(job);
      case "range":
        return this.#gatherRange(job);
      case "question":
        return this.#answerQuestion(job);
    }
  }

  /** Repeatedly looks at and waits for jobs of all clients. Never resolves; rejects when the run is over. */
  async read(client: McpClient): Promise<never> {
    for (let round = 0; ; round++) {
      await this.#calls.pause(LOOK_EVERY);
      const names = [...this.#log.wanted.values()].flatMap(({ acknowledged }) => acknowledged ?? []);
      if (names.length === 0) continue;
      const from = (round * LOOK_AT) % names.length;
      if (round % 3 > 0) await this.probe(client, names.slice(from, from + LOOK_AT));
      else await this.#await(client, names.filter((name) => !this.#log.endings.has(name)).slice(-WAIT_FOR));
    }
  }

  /** Looks at jobs once, and reads results that are too large for the answer. Returns whether everything was answered. */
  async probe(client: McpClient, names: readonly string[]): Promise<boolean> {
    const content = await this.#calls.tool(client, "probe_status", { job_names: names });
    for (const view of content?.statuses ?? []) {
      if (view.summary === undefined) this.#saw(view);
      else if (!this.#log.endings.has(view.job_name)) {
        const result = await this.#calls.whole(view.job_name);
        if (result === undefined) return false;
        this.#saw({ ...view, result });
      }
    }
    return content !== undefined;
  }

  /** The names of all jobs from the pages of `list_jobs`; undefined if there are too many to list. */
  async list(client: McpClient): Promise<Set<string> | undefined> {
    const names = new Set<string>();
    for (let cursor: string | undefined; ;) {
      const args = { limit: 100, ...(cursor !== undefined && { cursor }) };
      const page = await this.#calls.persist(() => this.#calls.tool(client, "list_jobs", args));
      for (const { job_name } of page.jobs) names.add(job_name);
      if (page.note !== undefined) return undefined;
      if (page.next_cursor === undefined) return names;
      cursor = page.next_cursor;
    }
  }

  async #await(client: McpClient, names: readonly string[]): Promise<void> {
    if (names.length === 0) return;
    const content = await this.#calls.tool(client, "await_result", { job_names: names, timeout_seconds: 3 });
    if (!content) return;
    const at = Date.now();
    for (const name of content.running) this.#log.stillRunning.push({ name, at });
    for (const [name, result] of Object.entries(content.results)) {
      this.#log.ended(name, { status: "complete", result });
    }
    for (const [job_name, error] of Object.entries(content.errors as Record<string, string>)) {
      const [status = "", ...reason] = error.split(": ");
      this.#saw({ job_name, status, error: reason.join(": ") });
    }
  }

  /** Records an answer about a job. Returns whether it has ended. */
  #saw(view: View): boolean {
    const { job_name: name, status, result, summary, error, finished_at } = view;
    if (status === "running") return false;
    if (result === undefined && summary !== undefined) return true; // `probe` reads the result
    if (status === "not_found") {
      this.#log.violation("lost", "a job that had been acknowledged was not found", name);
      return true;
    }
    const ending: Ending = { status };
    if (status === "complete") ending.result = result;
    if (status === "failed") ending.error = error ?? "";
    this.#log.ended(name, ending, finished_at);
    return true;
  }

  async #startAndCancel(
    job: Extract<PlannedJob, { kind: "gathering" | "timer" }>,
    name: string,
    tool: string,
  ): Promise<void> {
    const starters = Array.from({ length: job.starters }, () => this.#next());
    const [first] = await Promise.all(starters.map((client) => this.#start(client, job, name, tool)));
    if (!first || job.cancelAfter === undefined) return;
    await this.#calls.pause(job.cancelAfter);
    const wanted = this.#log.wanted.get(name) as Wanted;
    wanted.cancel = { name: first, outcome: "sent" };
    const content = await this.#calls.persist(() =>
      this.#calls.tool(this.#next(), "cancel_job", { job_names: [first] }),
    );
    if (content.not_found.length > 0) this.#log.violation("lost", "cancel_job did not find it", first);
    else wanted.cancel.outcome = content.cancelled.length > 0 ? "cancelled" : "already_finished";
  }

  /** Repeats a start until it is acknowledged; returns the name in the answer. */
  async #start(client: McpClient, job: PlannedJob, name: string, tool: string): Promise<string> {
    const content = await this.#calls.persist(() => {
      this.#log.attempt(name, job);
      return this.#calls.tool(client, tool, job.args);
    });
    const acknowledged: string = content.job_name ?? content.promise_id;
    this.#log.acknowledged(name, acknowledged, content.fires_at);
    return acknowledged;
  }

  async #startTwice(job: Extract<PlannedJob, { kind: "refused" }>): Promise<void> {
    const name = monthName(job.args);
    const first = await this.#start(this.#next(), job, name, "start_gathering");
    await this.#calls.persist(async () => {
      await this.#await(this.#next(), [first]);
      return this.#log.endings.get(first);
    });
    const second = await this.#start(this.#next(), job, name, "start_gathering");
    if (second === first) this.#log.violation("unexpected answer", "a failed job was not started again", name);
  }

  async #gatherRange(job: Extract<PlannedJob, { kind: "range" }>): Promise<void> {
    const name = rangeName(job.args);
    const view = await this.#calls.persist(async () => {
      this.#log.attempt(name, job);
      return this.#calls.tool(this.#next(), "weather_range", job.args);
    });
    this.#log.acknowledged(name, view.job_name);
    this.#saw(view);
  }

  async #answerQuestion(job: Extract<PlannedJob, { kind: "question" }>): Promise<void> {
    const name = rangeName(job.args);
    const { taskId } = await this.#calls.persist(() => {
      this.#log.attempt(name, job);
      return this.#calls.task("tools/call", { name: "weather_range", arguments: job.args });
    });
    this.#log.acknowledged(name, name);
    const asked = await this.#untilTask(taskId, ({ status }) => status !== "working");
    if (asked.status !== "input_required") {
      return this.#log.violation("unexpected answer", `it did not ask before it was ${asked.status}`, name);
    }
    await this.#calls.pause(job.after);
    const replies = [job.reply, ...(job.rival ? [job.rival] : [])];
    await Promise.all(replies.map((reply) => this.#reply(name, taskId, reply, Object.keys(asked.inputRequests))));
    const ended = await this.#untilTask(taskId, ({ status }) => status !== "working" && status !== "input_required");
    this.#saw(ended.result?.structuredContent ?? { job_name: name, status: ended.status });
  }

  async #reply(name: string, taskId: string, reply: Reply, keys: string[]): Promise<void> {
    this.#log.wanted.get(name)?.replies.add(reply);
    await this.#calls.persist(() => {
      if (reply === "cancel_task") return this.#calls.task("tasks/cancel", { taskId });
      const inputResponses = Object.fromEntries(keys.map((key) => [key, ANSWERS[reply]]));
      return this.#calls.task("tasks/update", { taskId, inputResponses });
    });
  }

  /** Polls a task at the interval that it suggests. */
  // oxlint-disable-next-line typescript/no-explicit-any -- a task
  async #untilTask(taskId: string, done: (task: any) => boolean): Promise<any> {
    for (;;) {
      const task = await this.#calls.persist(() => this.#calls.task("tasks/get", { taskId }));
      if (done(task)) return task;
      await this.#calls.pause(Math.min(task.pollIntervalMs, 2_000));
    }
  }

  #next(): McpClient {
    return this.#clients[this.#turn++ % this.#clients.length] as McpClient;
  }
}

interface View {
  job_name: string;
  status: string;
  result?: unknown;
  summary?: unknown;
  error?: string;
  finished_at?: string;
}

/** Handles the rejection of promises that may reject only when the run is over. */
export function untilOver(error: unknown): void {
  if (!(error instanceof RunOver)) throw error;
}
