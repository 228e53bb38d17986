import { createHash } from "node:crypto";
import { rpc, rpcHeaders, rpcMessage } from "../support/rpc.ts";
import { tasksAt } from "../tasks/support.ts";

/** The edge's bindings for static tokens, given by their owners' names. */
export function bearerBindings(tokens: Record<string, string>): Record<string, string> {
  const hashed = Object.entries(tokens).map(([name, token]) => ({
    name,
    sha256: createHash("sha256").update(token).digest("hex"),
  }));
  return { AUTH_MODE: "bearer", BEARER_TOKENS: JSON.stringify(hashed) };
}

/** Requests the list of tools, which every caller may read, and returns the raw response. */
export const listTools = (url: string, headers: Record<string, string> = {}): Promise<Response> =>
  fetch(url, {
    method: "POST",
    headers: { ...rpcHeaders("tools/list"), ...headers },
    body: JSON.stringify(rpcMessage("tools/list", {}, {})),
  });

export const bearer = (token: string) => ({ authorization: `Bearer ${token}` });

/** A caller of an edge, which calls tools without tasks, and with them by `tasks`. */
export interface TestCaller {
  token: string;
  /** Calls a tool as a client without the Tasks extension. Returns its structured content, and rejects if the tool fails. */
  // oxlint-disable-next-line typescript/no-explicit-any -- each test knows the shape of its content
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
