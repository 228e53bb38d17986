/** The host of a card: messages of MCP Apps between two windows. The extension's own library is ten times as large as the card. */
import type {
  McpUiHostContext,
  McpUiInitializeResult,
  McpUiToolCancelledNotification,
  McpUiToolInputNotification,
} from "@modelcontextprotocol/ext-apps";
import type { CallToolResult } from "../../core/tools/index.ts";

const REVISION = "2026-01-26";

const REQUEST_TIMEOUT_MS = 60_000;

/** The notifications that a host sends to its card. */
interface HostNotifications {
  "ui/notifications/tool-input": McpUiToolInputNotification["params"];
  "ui/notifications/tool-result": CallToolResult;
  "ui/notifications/tool-cancelled": McpUiToolCancelledNotification["params"];
  "ui/notifications/host-context-changed": Partial<McpUiHostContext>;
}

type Handlers = { [Method in keyof HostNotifications]: (params: HostNotifications[Method]) => void };

interface Message {
  jsonrpc?: string;
  id?: number | string;
  method?: string;
  params?: object;
  result?: unknown;
  error?: { message?: string };
}

export class Host {
  readonly #pendingRequests = new Map<unknown, (message: Message) => void>();
  #lastId = 0;
  #capabilities: McpUiInitializeResult["hostCapabilities"] = {};

  /** Whether the host reads resources for the card. */
  get reads(): boolean {
    return this.#capabilities.serverResources !== undefined;
  }

  /** Initializes the connection, and then reports each change of the card's size to the host. */
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
    const reportSize = () => {
      const size = { width: innerWidth, height: Math.ceil(root.getBoundingClientRect().height) };
      this.#send({ method: "ui/notifications/size-changed", params: size });
    };
    new ResizeObserver(reportSize).observe(root);
    return hostContext;
  }

  /** @throws {Error} with the host's message if it refuses, or after a minute without an answer */
  request<Result>(method: string, params: object): Promise<Result> {
    this.#lastId += 1;
    const id = this.#lastId;
    return new Promise<Result>((resolve, reject) => {
      const timer = setTimeout(() => settle({ error: { message: "the host does not answer" } }), REQUEST_TIMEOUT_MS);
      const settle = ({ result, error }: Message) => {
        clearTimeout(timer);
        this.#pendingRequests.delete(id);
        if (error) reject(new Error(error.message ?? "the host refuses"));
        else resolve(result as Result);
      };
      this.#pendingRequests.set(id, settle);
      this.#send({ id, method, params });
    });
  }

  /** The content of a resource that the host reads. */
  async read(uri: string): Promise<{ text?: string; blob?: string } | undefined> {
    const { contents } = await this.request<{ contents: { text?: string; blob?: string }[] }>("resources/read", {
      uri,
    });
    return contents[0];
  }

  openLink(url: string): void {
    this.request("ui/open-link", { url }).catch(() => {});
  }

  #receive(message: Message, handlers: Handlers): void {
    const { id, method, params = {} } = message;
    if (method === undefined) this.#pendingRequests.get(id)?.(message);
    else if (id === undefined) handlers[method as keyof HostNotifications]?.(params as never);
    else if (method === "ping" || method === "ui/resource-teardown") this.#send({ id, result: {} });
    else this.#send({ id, error: { code: -32601, message: "Method not found" } });
  }

  #send(message: object): void {
    // The card has no secrets, and its frame does not know the host's origin.
    parent.postMessage({ jsonrpc: "2.0", ...message }, "*");
  }
}
