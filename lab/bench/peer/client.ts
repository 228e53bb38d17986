/** The Tasks client, in a separate process. It starts jobs for its parent and polls each of them until it is complete. */
import { setTimeout as delay } from "node:timers/promises";
import { Pool } from "undici";
import { type Message, MODERN, mcpRequest, toolCall } from "../setup/mcp.ts";

export interface Work {
  /** The MCP endpoint. */
  url: string;
  /** The number of jobs, and the prefix of their names. */
  jobs: number;
  prefix: string;
  /** The number of clients, and the jobs that each has under way at once. */
  clients: number;
  window: number;
  /** The pause between polls of one job, in milliseconds. */
  pause: number;
}

export interface Done {
  /** From the first start to the last result. */
  seconds: number;
  /** The number of polls of all jobs. */
  polls: number;
  /** Errors, if there were any. */
  failure: string | undefined;
}

async function run({ url, jobs, prefix, clients, window, pause }: Work): Promise<Done> {
  const { origin, pathname: path } = new URL(url);
  const pool = new Pool(origin, { connections: clients, pipelining: 1 });
  let started = 0;
  let polls = 0;
  const ask = async (message: Message) => {
    const { body, headers } = mcpRequest(MODERN, { ...message, tasks: true });
    const response = await pool.request({ path, method: "POST", headers, body });
    const text = await response.body.text();
    const { result } = text.startsWith("{") ? JSON.parse(text) : {};
    if (!result) throw new Error(`${message.method}: ${response.statusCode} ${text.slice(0, 500)}`);
    return result;
  };
  const start = async () => {
    const { taskId } = await ask(toolCall("fetch_once", { name: `${prefix}${started++}` }));
    return taskId as string;
  };
  const isComplete = async (taskId: string) => {
    polls += 1;
    const { status, result } = await ask({ method: "tasks/get", params: { taskId } });
    if (status === "working") return false;
    if (status === "completed" && result.content[0].text.includes("2013-05-31")) return true;
    throw new Error(`a job ended as ${status}: ${JSON.stringify(result)}`);
  };
  /** Keeps the window full, and polls the oldest job until it is complete. */
  const client = async () => {
    const open: string[] = [];
    for (;;) {
      while (open.length < window && started < jobs) open.push(await start());
      const [oldest] = open;
      if (oldest === undefined) return;
      if (await isComplete(oldest)) open.shift();
      else await delay(pause);
    }
  };
  const begun = performance.now();
  let failure: string | undefined;
  try {
    await Promise.all(Array.from({ length: clients }, client));
  } catch (error) {
    failure = (error as Error).message;
  }
  const seconds = (performance.now() - begun) / 1_000;
  await pool.destroy();
  return { seconds, polls, failure };
}

process.on("message", async (work: Work) => process.send?.(await run(work)));
process.on("disconnect", () => process.exit());
