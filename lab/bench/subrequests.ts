import { createHash, randomUUID } from "node:crypto";
import { startGate } from "../../test/support/gate.ts";
import type { Bench } from "./bench.ts";
import { atMost, exactly, type Figure, figure } from "./figures.ts";
import { ask, callTool, type Message, MODERN, toolCall } from "./mcp.ts";

/** Counts the edge's requests to Resonate. */
export async function measureSubrequests(bench: Bench): Promise<Figure[]> {
  await using gate = await startGate(bench.resonate.url);
  await using edge = await bench.serve("product", { RESONATE_URL: gate.url });
  const url = `${edge.url}/mcp`;
  const month = (latitude: number) => ({ latitude, longitude: -122.25, year: 2013, month: 5 });
  const names: string[] = [];
  for (let i = 0; i < 10; i++) {
    const { job_name } = await callTool(url, "start_gathering", month(47 + i / 100));
    await bench.complete(job_name);
    names.push(job_name);
  }
  const task = await ask(url, { ...toolCall("weather_data", month(47)), tasks: true });
  const figures: Figure[] = [];
  const count = async (name: string, target: number, message: Message, on = url, headers = {}) => {
    const before = gate.calls.length + gate.streams.opened;
    await ask(on, message, MODERN, headers);
    const requests = gate.calls.length + gate.streams.opened - before;
    figures.push(figure(`subrequests: ${name}`, "", exactly(requests), atMost(target)));
  };
  await count("start_gathering, new job", 1, toolCall("start_gathering", month(48)));
  const token = randomUUID();
  const tokens = [{ name: "bench", sha256: createHash("sha256").update(token).digest("hex") }];
  const bearer = { RESONATE_URL: gate.url, AUTH_MODE: "bearer", BEARER_TOKENS: JSON.stringify(tokens) };
  await using closed = await bench.serve("product", bearer);
  for (const [name, latitude] of [
    ["start_gathering, a caller's first job", 49],
    ["start_gathering, a caller's next job", 50],
  ] as const) {
    const message = toolCall("start_gathering", month(latitude));
    await count(name, 1, message, `${closed.url}/mcp`, { authorization: `Bearer ${token}` });
  }
  await count("start_gathering, existing job", 1, toolCall("start_gathering", month(48)));
  await count("set_timer", 1, toolCall("set_timer", { timer_name: "subrequests", seconds: 3_600 }));
  await count("probe_status, 10 jobs", 10, toolCall("probe_status", { job_names: names }));
  await count("await_result, 1 job", 2, toolCall("await_result", { job_names: names.slice(0, 1) }));
  await count("await_result, 10 jobs", 11, toolCall("await_result", { job_names: names }));
  await count("tasks/get", 1, { method: "tasks/get", params: { taskId: task.taskId }, tasks: true });
  await count("tools/list", 0, { method: "tools/list" });
  return figures;
}
