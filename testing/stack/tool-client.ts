/** A client that calls the tools of a stack. */
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import type { StackPart } from "./stack-part.ts";

/**
 * A tool answered a {@link TestStack.call} with an error. The message is the text of the answer, `content` its structured content.
 *
 * @example
 * const isRefused = async (stack: TestStack) => {
 *   const error = await stack.call("wait_for_site", { url: "nowhere" }).catch((error) => error);
 *   return error instanceof ToolCallFailed;
 * };
 */
export class ToolCallFailed extends Error {
  override name = "ToolCallFailed";
  readonly content: Readonly<Record<string, unknown>>;

  constructor(message: string, content: Readonly<Record<string, unknown>>) {
    super(message);
    this.content = content;
  }
}

const CALL_TIMEOUT_MS = 90_000;

/** Connects to the edge at its first call. */
export class ToolClient implements AsyncDisposable {
  readonly #client = new Client({ name: "test", version: "1.0.0" }, { versionNegotiation: { mode: "auto" } });
  readonly #url: string;
  readonly #edge: StackPart;
  #connection: Promise<void> | undefined;

  constructor(url: string, edge: StackPart) {
    this.#url = url;
    this.#edge = edge;
  }

  /** Calls a tool and resolves with the content of its answer. @throws {ToolCallFailed} @throws {Error} if the edge exits */
  async call<T>(name: string, args: object): Promise<T> {
    const result = await this.#callTool(name, args);
    const content = { ...(result.structuredContent as Record<string, unknown> | undefined) };
    if (!result.isError) return content as T;
    const texts = result.content.map((part) => (part.type === "text" ? part.text : ""));
    throw new ToolCallFailed(texts.join("\n"), content);
  }

  async #callTool(name: string, args: object) {
    this.#connection ??= this.#connect();
    await this.#connection;
    const cancellation = new AbortController();
    const edgeExit = this.#edge.process.exited.then(() => {
      throw new Error(`the edge exited during the call of ${name}`);
    });
    try {
      const options = { timeout: CALL_TIMEOUT_MS, signal: cancellation.signal };
      return await Promise.race([this.#client.callTool({ name, arguments: { ...args } }, options), edgeExit]);
    } finally {
      cancellation.abort();
    }
  }

  async #connect(): Promise<void> {
    try {
      await this.#client.connect(new StreamableHTTPClientTransport(new URL(this.#url)));
    } catch (error) {
      this.#connection = undefined;
      throw error;
    }
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#client.close();
  }
}
