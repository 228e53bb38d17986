import type { JSONRPCRequest, Result, ServerContext } from "@modelcontextprotocol/server";
import { ErrorCode, ProtocolError } from "../../core/tools/mcp.ts";
import type { Sdk } from "../mcp/load-sdk.ts";

type Handler = (request: JSONRPCRequest, context: ServerContext) => Promise<Result>;

/**
 * A server whose tools may answer with a task. The SDK gives every tool's result a `content`; a task has none. And parameters
 * of the wrong form are the client's error here, where the SDK calls them its own.
 */
export function tasksServer(Server: Sdk["Server"]): Sdk["Server"] {
  return class extends Server {
    protected override _wrapHandler(method: string, handler: Handler): Handler {
      const wrapped = super._wrapHandler(method, handler);
      return async (request, context) => {
        const result = await wrapped(request, context).catch((error) => {
          throw wrongForm(error) ?? error;
        });
        if (method !== "tools/call") return result;
        if (result.resultType !== "task") return result;
        const { content, ...task } = result;
        return task;
      };
    }
  };
}

/** What the SDK's parser has found, which it throws as an error whose message is its list of issues, as JSON. */
function wrongForm({ name, message }: Error): ProtocolError | undefined {
  if (name !== "Error" || !message.startsWith("[")) return undefined;
  const issues = JSON.parse(message) as { path: string[]; message: string }[];
  const said = issues.map(({ path, message }) => `${path.slice(1).join(".")}: ${message}`).join("; ");
  return new ProtocolError(ErrorCode.InvalidParams, `Invalid params: ${said}`.slice(0, 500));
}
