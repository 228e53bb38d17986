/**
 * A server that counts: it first writes every call as a line to the file `CALLS`. It serves stdio or, at `PORT`, HTTP with
 * sessions, whose streams can be resumed with `STREAMS`. While it runs, the folder `PIDS` has a file named by its process id.
 */
import { randomUUID } from "node:crypto";
import { appendFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import {
  InMemoryTaskMessageQueue,
  InMemoryTaskStore,
  type ToolTaskHandler,
} from "@modelcontextprotocol/sdk/experimental/tasks";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import { type EventStore, StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import * as z from "zod";

const { CALLS = "", PIDS, PORT, STREAMS } = process.env;

const note = (what: string) => appendFileSync(CALLS, `${what}\n`);
const text = (text: string) => ({ content: [{ type: "text" as const, text }] });
const delay = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

const question = (id: string) => ({
  message: `Write ${id}?`,
  requestedSchema: {
    type: "object" as const,
    properties: { sure: { type: "boolean" as const } },
    required: ["sure"],
  },
});

const inputSchema = { id: z.string(), ms: z.number().default(0) };

function counting(): McpServer {
  const capabilities = { logging: {}, tasks: { cancel: {}, requests: { tools: { call: {} } } } };
  const taskStore = new Tasks();
  const taskMessageQueue = new InMemoryTaskMessageQueue();
  const server = new McpServer({ name: "counting", version: "1.0.0" }, { capabilities, taskStore, taskMessageQueue });
  registerTools(server);
  registerNotifyingTools(server);
  registerAskingTools(server);
  registerTask(server);
  return server;
}

/** Tools that only answer, or end the program. */
function registerTools(server: McpServer): void {
  const after = async ({ id, ms }: { id: string; ms: number }, tool: string) => {
    note(`${tool} ${id}`);
    await delay(ms);
    return text(`${tool} ${id} is done`);
  };
  server.registerTool("write", { description: "Writes.", inputSchema }, (args) => after(args, "write"));
  const read = { description: "Reads.", inputSchema, annotations: { readOnlyHint: true } };
  server.registerTool("read", read, (args) => after(args, "read"));
  // Answers with the caller's credentials: the environment variable of a program, or the header of a request.
  server.registerTool("whose", { inputSchema }, ({ id }, { requestInfo }) => {
    note(`whose ${id}`);
    return text(String(process.env.WHOSE ?? requestInfo?.headers["x-whose"]));
  });
  server.registerTool("crash", { inputSchema }, ({ id }) => {
    note(`crash ${id}`);
    process.exit(1);
  });
  server.registerTool("fails", { inputSchema, annotations: { idempotentHint: true } }, ({ id }) => {
    note(`fails ${id}`);
    return { isError: true, ...text(`no ${id} today`) };
  });
  server.registerTool("large", { inputSchema: { size: z.number() } }, ({ size }) => {
    note(`large ${size}`);
    return text("x".repeat(size));
  });
  server.registerTool("says", { inputSchema: { answer: z.string() } }, ({ answer }) => {
    note("says");
    return JSON.parse(answer);
  });
  server.registerTool("says.a", { inputSchema: {} }, () => text("another tool"));
  server.registerTool("grow", { inputSchema: {} }, () => {
    server.registerTool("late", { description: "Came late.", inputSchema: {} }, () => text("late"));
    return text("grown");
  });
}

/** Tools that send notifications before they answer. */
function registerNotifyingTools(server: McpServer): void {
  server.registerTool("logs", { inputSchema }, async ({ id }, { sendNotification }) => {
    console.error(`${id} beside it`);
    // Over stdio these lines stand among the messages, and are not messages.
    if (PORT === undefined) for (const junk of ["junk", "null", '"text"', "[]", "{}"]) console.log(junk);
    for (const level of ["debug", "warning"] as const) {
      const params = { level, logger: "counting", data: `${id} by the protocol` };
      await sendNotification({ method: "notifications/message", params });
    }
    return text("logged");
  });
  server.registerTool("steps", { inputSchema }, async ({ id, ms }, { _meta, sendNotification, signal }) => {
    note(`steps ${id}`);
    signal.addEventListener("abort", () => note(`cancelled ${id}`));
    for (let progress = 1; progress <= 10 && !signal.aborted; progress++) {
      await delay(ms / 10);
      const progressToken = _meta?.progressToken ?? "";
      const params = { progressToken, progress, total: 10, message: `step ${progress}` };
      await sendNotification({ method: "notifications/progress", params });
    }
    return text(`steps ${id} are done`);
  });
}

/** Tools that send requests to their client. */
function registerAskingTools(server: McpServer): void {
  server.registerTool("samples", { inputSchema }, async ({ id }, { sendRequest }) => {
    note(`samples ${id}`);
    const answerTo = (method: string, params: object) =>
      sendRequest({ method, params } as never, z.any()).then(
        () => "answered",
        (error: Error) => error.message,
      );
    return text(
      `${await answerTo("sampling/createMessage", { messages: [], maxTokens: 1 })}; ${await answerTo("roots/list", {})}`,
    );
  });
  server.registerTool("asks", { description: "Asks, then writes.", inputSchema }, async ({ id }, { sendRequest }) => {
    note(`asks ${id}`);
    const params = question(id);
    const answer = await sendRequest({ method: "elicitation/create", params }, z.any(), { timeout: 600_000 });
    note(`answered ${id}`);
    return text(JSON.stringify(answer));
  });
}

/** A tool whose call becomes a task, which asks. */
function registerTask(server: McpServer): void {
  const research = { inputSchema, execution: { taskSupport: "required" as const } };
  const researching: ToolTaskHandler<typeof inputSchema> = {
    async createTask({ id, ms }, { taskStore, sendRequest }) {
      note(`research ${id}`);
      const task = await taskStore.createTask({ ttl: 600_000, pollInterval: 200 });
      const { taskId } = task;
      const work = async () => {
        await delay(ms);
        await taskStore.updateTaskStatus(taskId, "input_required");
        const answer = sendRequest({ method: "elicitation/create", params: question(id) }, z.any(), {
          relatedTask: { taskId },
          timeout: 600_000,
        } as object);
        note(`asked ${id}`);
        const answerContent = await answer;
        note(`answered ${id}`);
        await taskStore.updateTaskStatus(taskId, "working");
        await taskStore.storeTaskResult(taskId, "completed", text(JSON.stringify(answerContent)));
      };
      work().catch((error) => note(`${error} ${id}`));
      return { task };
    },
    getTask: (_args, { taskStore, taskId }) => taskStore.getTask(taskId),
    getTaskResult: async (_args, { taskStore, taskId }) => (await taskStore.getTaskResult(taskId)) as never,
  };
  server.experimental.tasks.registerToolTask("research", research, researching);
}

/** Notes when a task is first polled, because by then the client has recorded the task. */
class Tasks extends InMemoryTaskStore {
  readonly #polledIds = new Set<string>();

  override getTask(id: string) {
    if (!this.#polledIds.has(id)) note(`looked ${id}`);
    this.#polledIds.add(id);
    return super.getTask(id);
  }
}

/** Keeps every message of every stream. */
class Events implements EventStore {
  readonly #events: { id: string; stream: string; message: unknown }[] = [];

  async storeEvent(stream: string, message: unknown) {
    const id = `${stream}_${this.#events.length}`;
    this.#events.push({ id, stream, message });
    return id;
  }

  async getStreamIdForEventId(id: string) {
    return this.#events.find((event) => event.id === id)?.stream;
  }

  async replayEventsAfter(last: string, { send }: { send(id: string, message: never): Promise<void> }) {
    const from = this.#events.findIndex(({ id }) => id === last);
    const stream = this.#events[from]?.stream ?? "";
    for (const event of this.#events.slice(from + 1)) {
      if (event.stream === stream && Object.keys(event.message as object).length > 0)
        await send(event.id, event.message as never);
    }
    return stream;
  }
}

if (PIDS !== undefined) {
  const own = join(PIDS, String(process.pid));
  writeFileSync(own, "");
  process.on("exit", () => rmSync(own, { force: true }));
}
if (PORT === undefined) {
  await counting().connect(new StdioServerTransport());
} else {
  const sessions = new Map<string, StreamableHTTPServerTransport>();
  createServer(async (request, response) => {
    const id = request.headers["mcp-session-id"];
    let transport = sessions.get(String(id));
    if (!transport && id === undefined) {
      transport = new StreamableHTTPServerTransport({
        sessionIdGenerator: () => randomUUID(),
        ...(STREAMS && { eventStore: new Events() }),
        onsessioninitialized: (session) => void sessions.set(session, transport as StreamableHTTPServerTransport),
      });
      await counting().connect(transport as never);
    }
    if (transport) await transport.handleRequest(request, response);
    else response.writeHead(404).end();
  }).listen(Number(PORT), "127.0.0.1", () => console.log("listening"));
}
