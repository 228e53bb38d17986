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

/** How long a client waits that gives up. */
const LEAVE_AFTER_MS = 500;

/** Starts the traffic. With a `token`, it comes from that caller, without the library clients, which send no token here. */
export function startTraffic({ url }: Stack, rate: number, token?: string): Traffic {
  const mix = requestMix({ url, token });
  return new SteadyTraffic(token === undefined ? { ...mix, ...libraryMix(url) } : mix, rate);
}

/** Sends the requests in turn, `rate` a second. */
class SteadyTraffic implements Traffic {
  readonly kinds: Record<string, number> = {};
  readonly latencies: Record<string, number[]> = {};
  readonly wrong: string[] = [];
  readonly #unanswered = new Set<Promise<void>>();
  readonly #end = new AbortController();
  readonly #ended: Promise<void>;
  #requests = 0;

  constructor(mix: RequestMix, rate: number) {
    this.#ended = this.#sendAll(Object.entries(mix), rate);
  }

  get requests(): number {
    return this.#requests;
  }

  stop(): Promise<void> {
    this.#end.abort();
    return this.#ended;
  }

  async #sendAll(mix: [string, SendRequest][], rate: number): Promise<void> {
    const start = Date.now();
    while (!this.#end.signal.aborted) {
      const [kind, send] = mix[this.#requests % mix.length] as (typeof mix)[number];
      const n = Math.floor(this.#requests++ / mix.length);
      this.#send(kind, () => send(n));
      await delay(Math.max(0, start + (this.#requests * 1_000) / rate - Date.now()));
    }
    await Promise.all(this.#unanswered);
  }

  #send(kind: string, send: () => Promise<unknown>): void {
    this.kinds[kind] = (this.kinds[kind] ?? 0) + 1;
    this.latencies[kind] ??= [];
    const [durations, start] = [this.latencies[kind], performance.now()];
    const answer: Promise<void> = send()
      .then(() => void durations.push(performance.now() - start))
      .catch((error) => void this.wrong.push(`${kind}: ${error.message}`))
      .then(() => void this.#unanswered.delete(answer));
    this.#unanswered.add(answer);
  }
}

/** Sends one request or several; `n` counts up. */
type SendRequest = (n: number) => Promise<unknown>;

/** The requests by kind. */
type RequestMix = Record<string, SendRequest>;

/** A server, as one caller reaches it. */
interface Access {
  url: string;
  token: string | undefined;
}

function requestMix(access: Access): RequestMix {
  const { url, token } = access;
  const call = (name: string, args: object) => callTool(access, name, args);
  return {
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
    "run a task": (n) => runTask(access, n),
    "list tools": () => ask(access, "tools/list", {}),
    "list jobs": () => call("list_jobs", { limit: 5, kind: "weather_range" }),
    "be refused": async () => {
      const params = { name: "set_timer", arguments: { timer_name: "", seconds: 0 } };
      const { result } = await rpc(url, "tools/call", params, { token });
      if (!result.isError) throw new Error("it was accepted");
    },
  };
}

function libraryMix(url: string): RequestMix {
  return {
    "connect and call": async (n) => {
      await using client: McpClient = await (n % 2 === 0 ? currentClient : client2025).connect(url);
      await client.callTool("probe_status", { job_names: names(n) });
    },
  };
}

function month(n: number) {
  return { latitude: 47.6, longitude: -122.3, year: 2012 + (n % 4), month: (n % 12) + 1 };
}

function names(n: number): string[] {
  return Array.from({ length: 20 }, (_, i) => `timer_t${Math.max(0, n - i)}`);
}

/** Calls a tool as a client that does not understand tasks. */
async function callTool({ url, token }: Access, name: string, args: object) {
  const { result, error } = await rpc(url, "tools/call", { name, arguments: args }, { capabilities: {}, token });
  if (error || result.isError) throw new Error(error?.message ?? result.content[0].text);
  return result.structuredContent;
}

/** Sends a request as a client that understands tasks. */
async function ask({ url, token }: Access, method: string, params: object): Promise<RpcAnswer["result"]> {
  const { result, error } = await rpc(url, method, params, { token });
  if (error) throw new Error(error.message);
  return result;
}

async function runTask(access: Access, n: number): Promise<void> {
  const timer = { name: "timer", arguments: { timer_name: `k${n}`, seconds: 2 } };
  const { taskId } = await ask(access, "tools/call", timer);
  await ask(access, "tasks/get", { taskId });
  await leave((signal) => listen(access, taskId, signal));
  await ask(access, "tasks/cancel", { taskId });
}

/** Does the work of a client that gives up. */
async function leave(work: (signal: AbortSignal) => Promise<unknown>): Promise<void> {
  await work(AbortSignal.timeout(LEAVE_AFTER_MS)).catch((error) => {
    if (error.name !== "TimeoutError") throw error;
  });
}

async function listen({ url, token }: Access, taskId: string, signal: AbortSignal): Promise<void> {
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
