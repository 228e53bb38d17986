/** The command line as a client of a server: one that is away for a while is asked again. */
import { setTimeout as sleep } from "node:timers/promises";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { DATA, stackRecordIn } from "../launcher/data-directory.ts";
import { packageVersion } from "../package.ts";

/** For how long a server that does not answer is asked again, and the pause in between; in milliseconds. */
const PATIENCE = 60_000;
const PAUSE = 1_000;

export const CLIENT_OPTIONS = { url: { type: "string" }, help: { type: "boolean" } } as const;

export const CLIENT_USAGE = `  --url URL        the server's MCP endpoint (default: that of the stack on this machine)
  --help           show this text

MCP_TOKEN in the environment is the caller's token, where the server wants one.`;

/** The endpoint that the options name. @throws {Error} for text that is not a URL */
export function endpointOf(url: string | undefined): URL {
  const given = url ?? stackRecordIn(DATA)?.url ?? "http://127.0.0.1:8787/mcp";
  if (!URL.canParse(given)) throw new Error(`--url: ${given} is no address.`);
  return new URL(given);
}

/** A connection that is opened anew after a failure. */
export class Connection {
  readonly #url: URL;
  #client: Client | undefined;

  constructor(url: URL) {
    this.#url = url;
  }

  get headers(): Record<string, string> {
    const { MCP_TOKEN } = process.env;
    return MCP_TOKEN ? { authorization: `Bearer ${MCP_TOKEN}` } : {};
  }

  /** The answer to a request. @throws {Error} where the server refuses it, or does not answer for a minute */
  async ask<T>(request: (client: Client) => Promise<T>): Promise<T> {
    for (const begun = Date.now(); ; ) {
      try {
        return await request(await this.#connected());
      } catch (error) {
        await this.close();
        if (!isPassing(error) || Date.now() - begun > PATIENCE) throw this.#explained(error);
        await sleep(PAUSE);
      }
    }
  }

  async close(): Promise<void> {
    const client = this.#client;
    this.#client = undefined;
    await client?.close().catch(() => {});
  }

  async #connected(): Promise<Client> {
    if (this.#client) return this.#client;
    const client = new Client(
      { name: "durable-mcp-edge", version: packageVersion() },
      { versionNegotiation: { mode: "auto" } },
    );
    await client.connect(new StreamableHTTPClientTransport(this.#url, { requestInit: { headers: this.headers } }));
    this.#client = client;
    return client;
  }

  #explained(error: unknown): Error {
    const { message, cause } = error as Error & { cause?: Error };
    const isRefused = /\b(401|403)\b|unauthorized|forbidden/i.test(message);
    const reason = cause?.message ? `${message}: ${cause.message}` : message;
    return new Error(
      isRefused ? `${this.#url} refuses the token: set MCP_TOKEN to one of its callers'.` : `${this.#url}: ${reason}`,
    );
  }
}

/** Whether the same request may succeed later: nobody answered, or the server said that it cannot now. */
function isPassing(error: unknown): boolean {
  const { message, code } = error as Error & { code?: unknown };
  if (/fetch failed|ECONN|socket|terminated|timed out|\b(429|5\d\d)\b|unavailable/i.test(message)) return true;
  return code === -32603;
}
