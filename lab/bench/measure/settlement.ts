/** The delay until a caller learns of a settled job: pushed by the edge, pushed by Resonate, and by polling. */
import { randomUUID } from "node:crypto";
import { EventSourceParserStream } from "eventsource-parser/stream";
import { quantile } from "simple-statistics";
import { atMost, exactly, type Figure, figure, spreadOf } from "../report/figures.ts";
import { type Bench, inParallel, seconds } from "../setup/bench.ts";
import { type Answer, ask, callTool, type Message, MODERN, mcpRequest, messages, toolCall } from "../setup/mcp.ts";

/** How many calls of a kind wait at a time. */
const BATCH = 20;

/** Time enough for the edge to register its listeners, in seconds. */
const REGISTERED = 0.7;

/** A caller that waits for a job. */
interface Waiter {
  kind: "await_result" | "notifications/tasks";
  name: string;
  /** Resolves with the time at which it learned of the settlement. */
  told: Promise<number>;
}

export async function measureSettlement(bench: Bench, samples: number): Promise<Figure[]> {
  await using edge = await bench.serve("product");
  const url = `${edge.url}/mcp`;
  const floor = await listener(bench);
  const product = { await_result: [] as number[], "notifications/tasks": [] as number[] };
  const beside = { await_result: [] as number[], "notifications/tasks": [] as number[] };

  for (let i = 0; i < samples; i += BATCH) {
    const numbers = Array.from({ length: BATCH }, (_, j) => i + j);
    const waiters = await inParallel(numbers, BATCH, async (n) => [await awaitJob(url, n), await watchTask(url, n)]);
    const pairs = await inParallel(waiters.flat(), BATCH, async (waiter) => ({
      waiter,
      client: await floor.listen(waiter.name),
    }));
    await seconds(REGISTERED);
    for (const { waiter, client } of pairs) {
      const start = performance.now();
      await bench.complete(waiter.name);
      product[waiter.kind].push((await waiter.told) - start);
      beside[waiter.kind].push((await client.told) - start);
    }
  }
  floor.close();
  return (["await_result", "notifications/tasks"] as const).flatMap((kind) => {
    const difference = product[kind].map((ms, i) => ms - (beside[kind][i] ?? Number.NaN));
    return [
      figure(`settlement to answer, ${kind}`, "ms", spreadOf(product[kind])),
      figure(`settlement to answer, ${kind}, p99`, "ms", p99(product[kind])),
      figure(`settlement to message, SSE client beside ${kind}`, "ms", spreadOf(beside[kind])),
      figure(`settlement to message, SSE client beside ${kind}, p99`, "ms", p99(beside[kind])),
      figure(`${kind} after the SSE client`, "ms", spreadOf(difference), atMost(5)),
      figure(`${kind} after the SSE client, p99`, "ms", p99(difference), atMost(20)),
    ];
  });
}

const p99 = (values: number[]) => ({ ...exactly(quantile(values, 0.99)), n: values.length });

const month = (n: number, year: number) => ({ latitude: 47 + n / 1_000, longitude: -122.2, year, month: 5 });

async function awaitJob(url: string, n: number): Promise<Waiter> {
  const { job_name: name } = await callTool(url, "start_gathering", month(n, 2013));
  const told = firstOf(
    url,
    toolCall("await_result", { job_names: [name], timeout_seconds: 120 }),
    ({ result }) => result?.structuredContent.results[name] !== undefined,
  );
  return { kind: "await_result", name, told };
}

async function watchTask(url: string, n: number): Promise<Waiter> {
  const { taskId } = await ask(url, { ...toolCall("weather_data", month(n, 2014)), tasks: true });
  const { job_name: name } = await callTool(url, "start_gathering", month(n, 2014));
  const told = firstOf(
    url,
    { method: "subscriptions/listen", params: { notifications: { taskIds: [taskId] } }, tasks: true },
    ({ params }) => params?.status === "completed",
  );
  return { kind: "notifications/tasks", name, told };
}

/** The arrival time of the first message for which `is` returns true. */
async function firstOf(url: string, message: Message, is: (answer: Answer) => boolean): Promise<number> {
  for await (const answer of messages(url, mcpRequest(MODERN, message))) if (is(answer)) return performance.now();
  throw new Error(`${message.method} ended without what was waited for`);
}

/** The floor: a client of the Resonate server with one event stream for all its listeners. */
async function listener({ resonate, namespace }: Bench) {
  const id = randomUUID();
  const closed = new AbortController();
  const token = resonate.env.RESONATE_TOKEN;
  const response = await fetch(`${resonate.url}/poll/floor/${id}`, {
    headers: { accept: "text/event-stream", ...(token && { authorization: `Bearer ${token}` }) },
    signal: closed.signal,
  });
  if (!response.ok || !response.body) throw new Error(`the event stream was refused: ${response.status}`);
  const events = response.body.pipeThrough(new TextDecoderStream()).pipeThrough(new EventSourceParserStream());
  const waiting = new Map<string, (at: number) => void>();
  const read = async () => {
    for await (const { data } of events) waiting.get(JSON.parse(data).data.promise.id)?.(performance.now());
  };
  read().catch(() => {}); // closed
  return {
    close: () => closed.abort(),
    /** Listens to a job. `told` resolves with the time at which its settlement is pushed. */
    async listen(name: string): Promise<{ told: Promise<number> }> {
      const awaited = namespace + name;
      const { promise: told, resolve } = Promise.withResolvers<number>();
      waiting.set(awaited, resolve);
      await resonate.call("promise.register_listener", { awaited, address: `poll://uni@floor/${id}` });
      return { told };
    },
  };
}

/** The same delay by polling `tasks/get` at the suggested interval, for jobs of 0.5 to 3 seconds. */
export async function measurePolling(bench: Bench, samples: number): Promise<Figure[]> {
  await using edge = await bench.serve("product");
  const url = `${edge.url}/mcp`;
  const numbers = Array.from({ length: samples }, (_, n) => n);
  const delays = await inParallel(numbers, samples, async (n) => {
    const task = await ask(url, { ...toolCall("weather_data", month(n, 2012)), tasks: true });
    const { job_name } = await callTool(url, "start_gathering", month(n, 2012));
    let settledAt = Number.NaN;
    const settling = seconds(0.5 + (2.5 * n) / samples).then(async () => {
      settledAt = performance.now();
      await bench.complete(job_name);
    });
    const poll: Message = { method: "tasks/get", params: { taskId: task.taskId }, tasks: true };
    for (let status = task; status.status !== "completed"; status = await ask(url, poll)) {
      await seconds(status.pollIntervalMs / 1_000);
    }
    const at = performance.now();
    await settling;
    return at - settledAt;
  });
  return [figure("settlement to answer, polling tasks/get at pollIntervalMs", "ms", spreadOf(delays))];
}
