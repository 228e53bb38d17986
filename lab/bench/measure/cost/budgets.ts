/** How many requests each operation makes to Resonate: by the edge for a caller's request, by the worker for a job. */
import { createHash, randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { type Gate, startGate } from "../../../../test/support/gate.ts";
import { startWorker } from "../../../../testing/stack/worker-process.ts";
import { startSampleArchive } from "../../../../tools/weather/sample-archive/server.ts";
import { budgeted } from "../../report/budgets.ts";
import type { Figure } from "../../report/figures.ts";
import type { Bench } from "../../setup/bench.ts";
import { ask, callTool, type Message, MODERN, toolCall } from "../../setup/mcp.ts";

/** How long requests that follow an answer are counted as well, in milliseconds. */
const AFTERMATH = 500;

const month = (latitude: number) => ({ latitude, longitude: -122.25, year: 2013, month: 5 });
const requestsAt = (gate: Gate) => gate.calls.length + gate.streams.opened;

export async function measureBudgets(bench: Bench): Promise<Figure[]> {
  return [...(await measureEdge(bench)), ...(await measureWorker(bench))];
}

async function measureEdge(bench: Bench): Promise<Figure[]> {
  await using gate = await startGate(bench.resonate.url);
  await using open = await bench.serve("product", { RESONATE_URL: gate.url });
  const token = randomUUID();
  const tokens = [{ name: "bench", sha256: createHash("sha256").update(token).digest("hex") }];
  const bearer = { RESONATE_URL: gate.url, AUTH_MODE: "bearer", BEARER_TOKENS: JSON.stringify(tokens) };
  await using closed = await bench.serve("product", bearer);

  const anyone = `${open.url}/mcp`;
  const names: string[] = [];
  for (let i = 0; i < 10; i++) {
    const { job_name } = await callTool(anyone, "start_gathering", month(47 + i / 100));
    await bench.complete(job_name);
    names.push(job_name);
  }
  const task = await ask(anyone, { ...toolCall("weather_data", month(47)), tasks: true });

  const figures: Figure[] = [];
  const count = async (operation: string, message: Message, url: string, headers: Record<string, string>) => {
    const before = requestsAt(gate);
    const result = await ask(url, message, MODERN, headers);
    figures.push(budgeted(operation, requestsAt(gate) - before));
    return result.structuredContent;
  };
  const byAnyone = (operation: string, message: Message) => count(operation, message, anyone, {});
  const byCaller = (operation: string, message: Message) =>
    count(operation, message, `${closed.url}/mcp`, { authorization: `Bearer ${token}` });

  await byAnyone("start_gathering, new job", toolCall("start_gathering", month(48)));
  await byAnyone("start_gathering, existing job", toolCall("start_gathering", month(48)));
  const first = await byCaller("start_gathering, a caller's first job", toolCall("start_gathering", month(49)));
  await byCaller("start_gathering, a caller's next job", toolCall("start_gathering", month(50)));
  await byAnyone("set_timer", toolCall("set_timer", { timer_name: "budgets", seconds: 3_600 }));
  await byAnyone("probe_status, 10 jobs", toolCall("probe_status", { job_names: names }));
  await byAnyone("await_result, 1 job", toolCall("await_result", { job_names: names.slice(0, 1) }));
  await byAnyone("await_result, 10 jobs", toolCall("await_result", { job_names: names }));
  await byCaller("list_jobs, 2 jobs", toolCall("list_jobs", {}));
  await byCaller("cancel_job", toolCall("cancel_job", { job_names: [first.job_name] }));
  await byAnyone("tasks/get", { method: "tasks/get", params: { taskId: task.taskId }, tasks: true });
  await byAnyone("tools/list", { method: "tools/list" });
  return figures;
}

async function measureWorker({ resonate, namespace, group }: Bench): Promise<Figure[]> {
  await using gate = await startGate(resonate.url);
  await using archive = await startSampleArchive();
  const own = { RESONATE_NAMESPACE: `${namespace}budgets/`, RESONATE_GROUP: `${group}b` };
  await using _worker = await startWorker({
    ...resonate.env,
    ...own,
    RESONATE_URL: gate.url,
    WEATHER_API_URL: archive.url,
  });
  const figures: Figure[] = [];
  const run = async (name: string, func: string, args: object) => {
    const id = own.RESONATE_NAMESPACE + name;
    await resonate.start({ id, func, args, group: own.RESONATE_GROUP });
    await resonate.settled(id, 60_000);
    await delay(AFTERMATH);
  };
  const count = async (operation: string, name: string, func: string, args: object) => {
    const before = requestsAt(gate);
    await run(name, func, args);
    figures.push(budgeted(operation, requestsAt(gate) - before));
  };
  const timer = (name: string) => ({ timer_name: name, fires_at: new Date(Date.now() + 1_000).toISOString() });
  // A worker makes some requests only once, before its first sleep. They are not part of a job's cost.
  await run("timer_first", "timer", timer("first"));
  const job = "weather_data_47.6_-122.3_2013_5";
  await count("a job of one step", job, "weather_data", { latitude: 47.6, longitude: -122.3, year: 2013, month: 5 });
  const months = { latitude: 47.6, longitude: -122.3, from: "2014-01", to: "2014-06", confirmed: true };
  await count("a job of 6 child jobs", "weather_range_budgets", "weather_range", months);
  await count("a job of one sleep", "timer_budgets", "timer", timer("budgets"));
  return figures;
}
