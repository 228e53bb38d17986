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
const QUIET = 400;

type Charged = Record<"requests" | "read" | "written", number>;

export async function measureRows(): Promise<Figure[]> {
  const data = await mkdtemp(join(tmpdir(), "bench-rows-"));
  await using cleanup = new AsyncDisposableStack();
  cleanup.defer(() => rm(data, { recursive: true, force: true }));
  const token = randomUUID();
  const tokens = [{ name: "bench", sha256: createHash("sha256").update(token).digest("hex") }];
  const bearer = { AUTH_MODE: "bearer", BEARER_TOKENS: JSON.stringify(tokens) };
  const bindings = { ...bearer, RUNNER: "", LOG_LEVEL: "error", ALLOW_LOOPBACK_CALLBACKS: "1" };
  const edge = cleanup.use(await startEdge({ port: 0, data, entry: "lab/bench/workers/rows.ts", bindings }));

  const charged = async (): Promise<Charged> => (await fetch(`${edge.url}/bench/rows`)).json() as Promise<Charged>;
  const atRest = async (): Promise<Charged> => {
    for (let before = await charged(); ; ) {
      await delay(QUIET);
      const after = await charged();
      if (isDeepStrictEqual(after, before)) return after;
      before = after;
    }
  };
  /** The charges when the last operation's work had ended; undefined after a further request. */
  let rest: Charged | undefined;
  const send = async (message: Message) => {
    rest = undefined;
    const answer = await ask(`${edge.url}/mcp`, message, MODERN, { authorization: `Bearer ${token}` });
    if (answer.isError) throw new Error(answer.content[0].text);
    return answer.structuredContent ?? answer;
  };
  const call = (name: string, args: object) => send(toolCall(name, args));
  const figures: Figure[] = [];
  const count = async (operation: string, work: () => Promise<unknown>) => {
    const before = rest ?? (await atRest());
    await work();
    const after = await atRest();
    rest = after;
    figures.push(budgeted(operation, after.written - before.written, "rows written"));
    figures.push(budgeted(operation, after.read - before.read, "rows read"));
    figures.push(budgeted(operation, after.requests - before.requests, "requests to objects"));
  };
  const counted = (operation: string, name: string, args: object) => count(operation, () => call(name, args));
  const timer = (n: number) => ({ timer_name: `t${n}`, seconds: 86_400 });
  const month = { latitude: 47.6, longitude: -122.3, year: 2013, month: 5 };

  // A caller's first job begins its record.
  await call("set_timer", timer(0));
  await counted("start a gathering", "start_gathering", month);
  await counted("start it again", "start_gathering", month);
  await counted("start a timer", "set_timer", timer(1));
  for (let n = 2; n <= JOBS; n++) await call("set_timer", timer(n));
  const job_names = Array.from({ length: JOBS }, (_, n) => `timer_t${n + 1}`);
  const first = { job_names: job_names.slice(0, 1) };
  await counted(`look at ${JOBS} running jobs`, "probe_status", { job_names });
  await counted(`wait for ${JOBS} running jobs`, "await_result", { job_names, timeout_seconds: 1 });
  await counted("wait for the same again", "await_result", { job_names, timeout_seconds: 1 });
  await counted(`list ${JOBS} jobs`, "list_jobs", { limit: JOBS });
  await counted("list those of a status that none has", "list_jobs", { limit: JOBS, status: "failed" });
  await counted("cancel a job", "cancel_job", first);
  await call("cancel_job", { job_names });
  await counted(`look at ${JOBS} ended jobs`, "probe_status", { job_names });
  await counted(`wait for ${JOBS} ended jobs`, "await_result", { job_names });
  const poll: Message = { method: "events/poll", params: { name: "job.ended", arguments: {}, cursor: null } };
  await count("poll events", () => send(poll));
  await counted("forget a job", "forget_jobs", first);
  const schedule = { name: "s", tool: "set_timer", arguments: JSON.stringify(timer(0)), every: 3_600 };
  await counted("schedule a job", "schedule_job", schedule);

  const receiver = cleanup.use(await startReceiver(newSecret()));
  const delivery = { mode: "webhook", url: receiver.url, secret: receiver.secret };
  const subscribe: Message = { method: "events/subscribe", params: { name: "job.ended", arguments: {}, delivery } };
  await count("subscribe to events", () => send(subscribe));
  await call("set_timer", timer(JOBS + 1));
  await count("cancel a job, told by web hook", async () => {
    await call("cancel_job", { job_names: [`timer_t${JOBS + 1}`] });
    await until("the web hook", () => receiver.delivered.length > 0);
  });
  return figures;
}
