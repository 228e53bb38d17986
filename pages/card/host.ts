/** The host of a card: messages of MCP Apps between two windows. The extension's own library weighs ten times the card. */
import type {
  McpUiHostContext,
  McpUiInitializeResult,
  McpUiToolCancelledNotification,
  McpUiToolInputNotification,
} from "@modelcontextprotocol/ext-apps";
import type { CallToolResult } from "../../core/tools/mcp.ts";

const REVISION = "2026-01-26";

/** For how long a request is waited for, in milliseconds. */
const PATIENCE = 60_000;

/** What a host tells its card. */
interface Told {
  "ui/notifications/tool-input": McpUiToolInputNotification["params"];
  "ui/notifications/tool-result": CallToolResult;
  "ui/notifications/tool-cancelled": McpUiToolCancelledNotification["params"];
  "ui/notifications/host-context-changed": Partial<McpUiHostContext>;
}

export type Handlers = { [Method in keyof Told]: (params: Told[Method]) => void };

interface Message {
  jsonrpc?: string;
  id?: number | string;
  method?: string;
  params?: object;
  result?: unknown;
  error?: { message?: string };
}

export class Host {
  readonly #waiting = new Map<unknown, (message: Message) => void>();
  #last = 0;
  #capabilities: McpUiInitializeResult["hostCapabilities"] = {};

  /** Whether it reads resources for the card. */
  get reads(): boolean {
    return this.#capabilities.serverResources !== undefined;
  }

  /** Shakes hands, and then tells the host the card's size at each change. */
  async connect(handlers: Handlers): Promise<McpUiHostContext> {
    addEventListener("message", ({ source, data }) => {
      if (source === parent && data?.jsonrpc === "2.0") this.#receive(data as Message, handlers);
    });
    const params = {
      appInfo: { name: "job-card", version: "1.0.0" },
      appCapabilities: {},
      protocolVersion: REVISION,
    };
    const { hostCapabilities, hostContext } = await this.request<McpUiInitializeResult>("ui/initialize", params);
    this.#capabilities = hostCapabilities;
    this.#send({ method: "ui/notifications/initialized", params: {} });
    const root = document.documentElement;
    const tellSize = () => {
      const size = { width: innerWidth, height: Math.ceil(root.getBoundingClientRect().height) };
      this.#send({ method: "ui/notifications/size-changed", params: size });
    };
    new ResizeObserver(tellSize).observe(root);
    return hostContext;
  }

  /** @throws {Error} in the host's words, where it refuses; after a minute without an answer */
  request<Result>(method: string, params: object): Promise<Result> {
    this.#last += 1;
    const id = this.#last;
    return new Promise<Result>((resolve, reject) => {
      const late = setTimeout(() => answered({ error: { message: "the host does not answer" } }), PATIENCE);
      const answered = ({ result, error }: Message) => {
        clearTimeout(late);
        this.#waiting.delete(id);
        if (error) reject(new Error(error.message ?? "the host refuses"));
        else resolve(result as Result);
      };
      this.#waiting.set(id, answered);
      this.#send({ id, method, params });
    });
  }

  #receive(message: Message, handlers: Handlers): void {
    const { id, method, params = {} } = message;
    if (method === undefined) this.#waiting.get(id)?.(message);
    else if (id === undefined) handlers[method as keyof Told]?.(params as never);
    else if (method === "ping" || method === "ui/resource-teardown") this.#send({ id, result: {} });
    else this.#send({ id, error: { code: -32601, message: "Method not found" } });
  }

  #send(message: object): void {
    // The card has no secrets, and its frame does not know the host's origin.
    parent.postMessage({ jsonrpc: "2.0", ...message }, "*");
  }
}
