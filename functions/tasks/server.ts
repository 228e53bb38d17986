import { type JSONRPCRequest, type Result, Server, type ServerContext } from "@modelcontextprotocol/server";

type Handler = (request: JSONRPCRequest, context: ServerContext) => Promise<Result>;

/** A server whose tools may answer with a task. The SDK gives every tool's result a `content`; a task has none. */
export class TasksServer extends Server {
  protected override _wrapHandler(method: string, handler: Handler): Handler {
    const wrapped = super._wrapHandler(method, handler);
    if (method !== "tools/call") return wrapped;
    return async (request, context) => {
      const result = await wrapped(request, context);
      if (result.resultType !== "task") return result;
      const { content, ...task } = result;
      return task;
    };
  }
}
