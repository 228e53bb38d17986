/** A steady mix of all client requests. */
import { setTimeout as delay } from "node:timers/promises";
import { client2025, currentClient, type McpClient } from "../../test/support/clients.ts";
import { type RpcAnswer, rpc, rpcHeaders } from "../../test/support/rpc.ts";
import type { Stack } from "../../test/support/stack.ts";

export interface Traffic {
  /** The number of requests, in total and by kind. */
  readonly requests: number;
  readonly kinds: Readonly<Record<string, number>>;
  /** The durations of the requests by kind, in milliseconds. */
  readonly latencies: Readonly<Record<string, number[]>>;
  /** Wrong answers. */
  readonly wrong: readonly string[];
  /** Stops sending requests, and waits for the outstanding answers. */
  stop(): Promise<void>;
}

/** How long a client waits that gives up, in milliseconds. */
const LEAVES_AFTER = 500;

/** Starts the traffic. With a `token`, it comes from that caller, without the library clients, which send no token here. */
export function startTraffic({ url }: Stack, rate: number, token?: string): Traffic {
  const kinds: Record<string, number> = {};
  const latencies: Record<string, number[]> = {};
  const wrong: string[] = [];
  const under = new Set<Promise<void>>();
  const over = new AbortController();
  let requests = 0;

  const call = async (name: string, args: object) => {
    const { result, error } = await rpc(url, "tools/call", { name, arguments: args }, { capabilities: {}, token });
    if (error || result.isError) throw new Error(error?.message ?? result.content[0].text);
    return result.structuredContent;
  };
  const task = async (method: string, params: object): Promise<RpcAnswer["result"]> => {
    const { result, error } = await rpc(url, method, params, { token });
    if (error) throw new Error(error.message);
    return result;
  };
  const leave = async (work: (signal: AbortSignal) => Promise<unknown>) => {
    await work(AbortSignal.timeout(LEAVES_AFTER)).catch((error) => {
      if (error.name !== "TimeoutError") throw error;
    });
  };
  const month = (n: number) => ({ latitude: 47.6, longitude: -122.3, year: 2012 + (n % 4), month: (n % 12) + 1 });
  const names = (n: number) => Array.from({ length: 20 }, (_, i) => `timer_t${Math.max(0, n - i)}`);

  /** The requests by kind. Each function sends one request or several; `n` counts up. */
  const mix: Record<string, (n: number) => Promise<unknown>> = {
    "set a timer": (n) => call("set_timer", { timer_name: `t${n}`, seconds: 5 }),
    "find a gathering": (n) => call("start_gathering", month(n)),
    "probe 20 jobs": (n) => call("probe_status", { job_names: names(n) }),
    "look at a timer": (n) => call("get_timer_status", { timer_name: `t${n}` }),
    "wait for a timer": (n) => call("await_result", { job_names: names(n), timeout_seconds: 10 }),
    "wait and leave": (n) =>
      leave((signal) => {
        const params = { name: "await_result", arguments: { job_names: names(n), timeout_seconds: 60 } };
        return rpc(url, "tools/call", params, { signal, token });
      }),
    "run a task": async (n) => {
      const { taskId } = await task("tools/call", { name: "timer", arguments: { timer_name: `k${n}`, seconds: 2 } });
      await task("tasks/get", { taskId });
      await leave((signal) => listen(url, taskId, signal, token));
      await task("tasks/cancel", { taskId });
    },
    "list tools": () => task("tools/list", {}),
    "list jobs": () => call("list_jobs", { limit: 5, kind: "weather_range" }),
    "be refused": async () => {
      const params = { name: "set_timer", arguments: { timer_name: "", seconds: 0 } };
      const { result } = await rpc(url, "tools/call", params, { token });
      if (!result.isError) throw new Error("it was accepted");
    },
    "connect and call": async (n) => {
      await using client: McpClient = await (n % 2 === 0 ? currentClient : client2025).connect(url);
      await client.callTool("probe_status", { job_names: names(n) });
    },
  };

  const kindsInTurn = Object.entries(mix).filter(([kind]) => token === undefined || kind !== "connect and call");
  const running = (async () => {
    const start = Date.now();
    while (!over.signal.aborted) {
      const [kind, request] = kindsInTurn[requests % kindsInTurn.length] as (typeof kindsInTurn)[number];
      const n = Math.floor(requests++ / kindsInTurn.length);
      kinds[kind] = (kinds[kind] ?? 0) + 1;
      latencies[kind] ??= [];
      const [took, from] = [latencies[kind], performance.now()];
      const made: Promise<void> = request(n)
        .then(() => void took.push(performance.now() - from))
        .catch((error) => void wrong.push(`${kind}: ${error.message}`))
        .then(() => void under.delete(made));
      under.add(made);
      await delay(Math.max(0, start + (requests * 1_000) / rate - Date.now()));
    }
    await Promise.all(under);
  })();

  return {
    get requests() {
      return requests;
    },
    kinds,
    latencies,
    wrong,
    stop() {
      over.abort();
      return running;
    },
  };
}

async function listen(url: string, taskId: string, signal: AbortSignal, token: string | undefined): Promise<void> {
  const _meta = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": { name: "soak", version: "1.0.0" },
    "io.modelcontextprotocol/clientCapabilities": { extensions: { "io.modelcontextprotocol/tasks": {} } },
  };
  const method = "subscriptions/listen";
  const params = { notifications: { taskIds: [taskId] }, _meta };
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });
  const headers = { ...rpcHeaders(method), ...(token !== undefined && { authorization: `Bearer ${token}` }) };
  await (await fetch(url, { method: "POST", headers, body, signal })).text();
}
