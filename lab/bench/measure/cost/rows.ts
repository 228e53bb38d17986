/**
 * What each operation of a caller costs an account: rows that its objects read and write, and requests to them, as the platform
 * counts and charges them. The results are in lab/measurements.md.
 */
import { createHash, randomUUID } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";
import { startEdge } from "../../../../cli/launcher/local-edge.ts";
import { newSecret, startReceiver } from "../../../../test/events/receiver.ts";
import { until } from "../../../../testing/stack/program.ts";
import { budgeted } from "../../report/budgets.ts";
import type { Figure } from "../../report/figures.ts";
import { ask, type Message, MODERN, toolCall } from "../../setup/mcp.ts";

/** The number of jobs in one operation. */
const JOBS = 10;
/** An operation's work counts as ended once its objects have been idle for this long after the answer, in milliseconds. */
const IDLE_MS = 400;

type Charges = Record<"requests" | "read" | "written", number>;

const JOB_NAMES = Array.from({ length: JOBS }, (_, n) => `timer_t${n + 1}`);

const timer = (n: number) => ({ timer_name: `t${n}`, seconds: 86_400 });

export async function measureRows(): Promise<Figure[]> {
  const data = await mkdtemp(join(tmpdir(), "bench-rows-"));
  await using cleanup = new AsyncDisposableStack();
  cleanup.defer(() => rm(data, { recursive: true, force: true }));
  const token = randomUUID();
  const tokens = [{ name: "bench", sha256: createHash("sha256").update(token).digest("hex") }];
  const bearer = { AUTH_MODE: "bearer", BEARER_TOKENS: JSON.stringify(tokens) };
  const bindings = { ...bearer, RUNNER: "", LOG_LEVEL: "error", ALLOW_LOOPBACK_CALLBACKS: "1" };
  const edge = cleanup.use(await startEdge({ port: 0, data, entry: "lab/bench/workers/rows.ts", bindings }));
  const caller = new ChargedCaller(edge.url, token);
  // A caller's first job begins its record.
  await caller.call("set_timer", timer(0));
  await countStarts(caller);
  await countReads(caller);
  await countEnds(caller);
  const schedule = { name: "s", tool: "set_timer", arguments: JSON.stringify(timer(0)), every: 3_600 };
  await caller.countCall("schedule a job", "schedule_job", schedule);
  await countWebHook(caller);
  return caller.figures;
}

/** A caller of an edge, alone in its account. Has a figure for each cost of the operations that it counted. */
class ChargedCaller {
  readonly figures: Figure[] = [];
  readonly #origin: string;
  readonly #token: string;
  /** The charges when the last operation's work had ended; undefined after a further request. */
  #rest: Charges | undefined;

  constructor(origin: string, token: string) {
    this.#origin = origin;
    this.#token = token;
  }

  async send(message: Message) {
    this.#rest = undefined;
    const answer = await ask(`${this.#origin}/mcp`, message, MODERN, { authorization: `Bearer ${this.#token}` });
    if (answer.isError) throw new Error(answer.content[0].text);
    return answer.structuredContent ?? answer;
  }

  call(name: string, args: object) {
    return this.send(toolCall(name, args));
  }

  /** Adds the figures of an operation, which is all that `work` causes. */
  async count(operation: string, work: () => Promise<unknown>): Promise<void> {
    const before = this.#rest ?? (await this.#chargesAtRest());
    await work();
    const after = await this.#chargesAtRest();
    this.#rest = after;
    this.figures.push(budgeted(operation, after.written - before.written, "rows written"));
    this.figures.push(budgeted(operation, after.read - before.read, "rows read"));
    this.figures.push(budgeted(operation, after.requests - before.requests, "requests to objects"));
  }

  countCall(operation: string, name: string, args: object): Promise<void> {
    return this.count(operation, () => this.call(name, args));
  }

  async #charges(): Promise<Charges> {
    return (await fetch(`${this.#origin}/bench/rows`)).json() as Promise<Charges>;
  }

  async #chargesAtRest(): Promise<Charges> {
    for (let before = await this.#charges(); ;) {
      await delay(IDLE_MS);
      const after = await this.#charges();
      if (isDeepStrictEqual(after, before)) return after;
      before = after;
    }
  }
}

/** Leaves the jobs of {@link JOB_NAMES} running. */
async function countStarts(caller: ChargedCaller): Promise<void> {
  const month = { latitude: 47.6, longitude: -122.3, year: 2013, month: 5 };
  await caller.countCall("start a gathering", "start_gathering", month);
  await caller.countCall("start it again", "start_gathering", month);
  await caller.countCall("start a timer", "set_timer", timer(1));
  for (let n = 2; n <= JOBS; n++) await caller.call("set_timer", timer(n));
}

async function countReads(caller: ChargedCaller): Promise<void> {
  const wait = { job_names: JOB_NAMES, timeout_seconds: 1 };
  await caller.countCall(`look at ${JOBS} running jobs`, "probe_status", { job_names: JOB_NAMES });
  await caller.countCall(`wait for ${JOBS} running jobs`, "await_result", wait);
  await caller.countCall("wait for the same again", "await_result", wait);
  await caller.countCall(`list ${JOBS} jobs`, "list_jobs", { limit: JOBS });
  await caller.countCall("list those of a status that none has", "list_jobs", { limit: JOBS, status: "failed" });
}

/** Ends the jobs of {@link JOB_NAMES}, and forgets one. */
async function countEnds(caller: ChargedCaller): Promise<void> {
  const first = { job_names: JOB_NAMES.slice(0, 1) };
  const poll: Message = { method: "events/poll", params: { name: "job.ended", arguments: {}, cursor: null } };
  await caller.countCall("cancel a job", "cancel_job", first);
  await caller.call("cancel_job", { job_names: JOB_NAMES });
  await caller.countCall(`look at ${JOBS} ended jobs`, "probe_status", { job_names: JOB_NAMES });
  await caller.countCall(`wait for ${JOBS} ended jobs`, "await_result", { job_names: JOB_NAMES });
  await caller.count("poll events", () => caller.send(poll));
  await caller.countCall("forget a job", "forget_jobs", first);
}

async function countWebHook(caller: ChargedCaller): Promise<void> {
  await using receiver = await startReceiver(newSecret());
  const delivery = { mode: "webhook", url: receiver.url, secret: receiver.secret };
  const subscribe: Message = { method: "events/subscribe", params: { name: "job.ended", arguments: {}, delivery } };
  await caller.count("subscribe to events", () => caller.send(subscribe));
  await caller.call("set_timer", timer(JOBS + 1));
  await caller.count("cancel a job, told by web hook", async () => {
    await caller.call("cancel_job", { job_names: [`timer_t${JOBS + 1}`] });
    await until("the web hook", () => receiver.delivered.length > 0);
  });
}
