/**
 * What each operation of a caller costs an account that has its own Resonate server: the rows that its object reads and writes,
 * as the platform counts and charges them. docs/deploy.md tells it.
 */
import { createHash, randomUUID } from "node:crypto";
import { run, until } from "../../../testing/simulation/program.ts";
import { budgeted } from "../report/budgets.ts";
import type { Figure } from "../report/figures.ts";
import type { Bench } from "../setup/bench.ts";
import { ask, type Message, MODERN, toolCall } from "../setup/mcp.ts";

/** How many jobs an operation names. */
const JOBS = 10;

export async function measureRows(bench: Bench): Promise<Figure[]> {
  await using program = run("test/support/object/object-process.ts", { args: ["--port", "0", "--memory"] });
  const ready = await until("the object", () => program.logs().find(({ msg }) => msg === "ready"));
  const url = String(ready.url);
  const token = randomUUID();
  const tokens = [{ name: "bench", sha256: createHash("sha256").update(token).digest("hex") }];
  const place = { RESONATE_URL: url, RESONATE_TOKEN: "", RESONATE_NAMESPACE: "", RESONATE_GROUP: "workers" };
  const bearer = { ...place, AUTH_MODE: "bearer", BEARER_TOKENS: JSON.stringify(tokens) };
  await using edge = await bench.serve("product", bearer);

  const rows = async (): Promise<{ read: number; written: number }> =>
    (await (await fetch(`${url}/usage`)).json()).rows;
  const figures: Figure[] = [];
  const call = async (message: Message) => {
    const headers = { authorization: `Bearer ${token}` };
    const { structuredContent, isError, content } = await ask(`${edge.url}/mcp`, message, MODERN, headers);
    if (isError) throw new Error(content[0].text);
    return structuredContent;
  };
  const count = async (operation: string, name: string, args: object) => {
    const before = await rows();
    const result = await call(toolCall(name, args));
    const after = await rows();
    figures.push(budgeted(operation, after.written - before.written, "rows written"));
    figures.push(budgeted(operation, after.read - before.read, "rows read"));
    return result;
  };
  const timer = (n: number) => ({ timer_name: `t${n}`, seconds: 86_400 });
  const month = { latitude: 47.6, longitude: -122.3, year: 2013, month: 5 };

  await call(toolCall("set_timer", timer(0)));
  await count("start_gathering, new job", "start_gathering", month);
  await count("start_gathering, existing job", "start_gathering", month);
  await count("set_timer", "set_timer", timer(1));
  for (let n = 2; n <= JOBS; n++) await call(toolCall("set_timer", timer(n)));
  const job_names = Array.from({ length: JOBS }, (_, n) => `timer_t${n + 1}`);
  const [first] = job_names;
  const wait = { timeout_seconds: 1 };
  await count(`probe_status, ${JOBS} running jobs`, "probe_status", { job_names });
  await count(`await_result, ${JOBS} running jobs`, "await_result", { job_names, ...wait });
  await count(`await_result, the same jobs again`, "await_result", { job_names, ...wait });
  await count(`list_jobs, ${JOBS} jobs`, "list_jobs", { limit: JOBS });
  await count("list_jobs, by a status that none has", "list_jobs", { limit: JOBS, status: "failed" });
  await count("cancel_job", "cancel_job", { job_names: [first] });
  await call(toolCall("cancel_job", { job_names }));
  await count(`probe_status, ${JOBS} ended jobs`, "probe_status", { job_names });
  await count(`await_result, ${JOBS} ended jobs`, "await_result", { job_names });
  await count("forget_jobs", "forget_jobs", { job_names: [first] });
  await count("schedule_job", "schedule_job", {
    name: "s",
    tool: "set_timer",
    arguments: JSON.stringify(timer(0)),
    every: 3_600,
  });
  return figures;
}
