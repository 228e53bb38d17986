import { createHash } from "node:crypto";
import { REVISION, rpc } from "../support/rpc.ts";
import { tasksAt } from "../tasks/support.ts";

/** What an edge is told of static tokens: each named after its owner. */
export function bearerBindings(tokens: Record<string, string>): Record<string, string> {
  const hashed = Object.entries(tokens).map(([name, token]) => ({
    name,
    sha256: createHash("sha256").update(token).digest("hex"),
  }));
  return { AUTH_MODE: "bearer", BEARER_TOKENS: JSON.stringify(hashed) };
}

/** Asks for the list of tools, which every caller may, and returns the bare response. */
export function listTools(url: string, headers: Record<string, string> = {}): Promise<Response> {
  const _meta = {
    "io.modelcontextprotocol/protocolVersion": REVISION,
    "io.modelcontextprotocol/clientInfo": { name: "test", version: "1.0.0" },
    "io.modelcontextprotocol/clientCapabilities": {},
  };
  return fetch(url, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      "mcp-protocol-version": REVISION,
      "mcp-method": "tools/list",
      ...headers,
    },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/list", params: { _meta } }),
  });
}

export const bearer = (token: string) => ({ authorization: `Bearer ${token}` });

/** A caller of an edge: by tools, and as a client that understands tasks. */
export interface TestCaller {
  token: string;
  /** Calls a tool as a client that knows nothing of tasks; returns its structured content. Fails when the tool does. */
  // biome-ignore lint/suspicious/noExplicitAny: tests look into it as they know it to be
  call(name: string, args?: object): Promise<any>;
  tasks: ReturnType<typeof tasksAt>;
}

export function callerAt(url: string, token: string): TestCaller {
  return {
    token,
    async call(name, args = {}) {
      const { result, error } = await rpc(url, "tools/call", { name, arguments: args }, { capabilities: {}, token });
      if (error || result.isError) throw new Error(error?.message ?? result.content[0].text);
      return result.structuredContent;
    },
    tasks: tasksAt(url, token),
  };
}

/** What is listed to a caller, also where the deployment's token may not search. */
export const listed = (caller: TestCaller, args: object = {}) => caller.call("list_jobs", args);
