/** `subscriptions/listen` with `taskIds`: pushes the complete task at each change. */
import * as z from "zod";
import {
  CLIENT_CAPABILITIES,
  ErrorCode,
  ProtocolError,
  SERVER_INFO,
  SUBSCRIPTION_ID,
  TASKS,
} from "../../core/tools/mcp.ts";
import { eventStream } from "../http/event-stream.ts";
import type { RequestScope } from "../http/scope.ts";
import { findPromise, missingTasksCapability, orUnavailable, type TaskService } from "./service.ts";
import { type Declared, showsForms } from "./task.ts";
import { type Watched, watchTasks } from "./watch.ts";

const MAX_TASKS = 100;

interface ListenMessage {
  id: string | number;
  params: Record<string, unknown>;
}

const Notifications = z.object({ taskIds: z.array(z.string()).min(1).max(MAX_TASKS) });

/**
 * Serves a `subscriptions/listen` request. The SDK judges whether the request is well-formed, and answers one that names no
 * tasks; it does not know `taskIds`, so its acknowledgement of a request with tasks is replaced.
 */
export async function subscribeToTasks(
  service: TaskService,
  serverInfo: object,
  scope: RequestScope,
  { request, message }: { request: Request; message: ListenMessage },
  sdk: () => Promise<Response>,
): Promise<Response> {
  const response = await sdk();
  if (!response.headers.get("content-type")?.startsWith("text/event-stream")) return response;
  const { id, params } = message;
  if (typeof params.notifications !== "object" || !("taskIds" in (params.notifications ?? {}))) return response;
  await response.body?.cancel();

  const { data: notifications } = Notifications.safeParse(params.notifications);
  if (!notifications) {
    const reason = `notifications.taskIds: a list of 1 to ${MAX_TASKS} task ids is required`;
    return jsonRpcError(id, { code: ErrorCode.InvalidParams, message: reason });
  }
  // The SDK has checked their form.
  const { [CLIENT_CAPABILITIES]: declared } = { ...(params._meta as { [CLIENT_CAPABILITIES]?: Declared }) };
  if (declared?.extensions?.[TASKS] === undefined) return jsonRpcError(id, missingTasksCapability(), 400);

  const find = async (taskId: string): Promise<Watched[]> => {
    const promise = await findPromise(service, taskId, { caller: scope.caller, store: scope.store });
    if (!promise) return [];
    return [{ taskId, name: promise.name, page: await service.links.urlOf(promise.name, scope.caller) }];
  };
  let tasks: Watched[];
  try {
    const taskIds = [...new Set(notifications.taskIds)];
    tasks = (await orUnavailable(service, Promise.all(taskIds.map(find)))).flat();
  } catch (error) {
    if (error instanceof ProtocolError) return jsonRpcError(id, error);
    throw error;
  }
  return eventStream(
    async (send, signal) => {
      const _meta = { [SUBSCRIPTION_ID]: id };
      const notify = (method: string, params: object) => send({ jsonrpc: "2.0", method, params: { ...params, _meta } });
      notify("notifications/subscriptions/acknowledged", {
        notifications: { taskIds: tasks.map(({ taskId }) => taskId) },
      });
      const onChange = (task: object) => notify("notifications/tasks", task);
      const audience = { showsForms: showsForms(declared), kept: service.kept };
      await watchTasks(scope.store, tasks, audience, onChange, signal);
      // All tasks have ended; by the protocol, the response to the request says that nothing more will come.
      send({
        jsonrpc: "2.0",
        id,
        result: { resultType: "complete", _meta: { ..._meta, [SERVER_INFO]: serverInfo } },
      });
    },
    request.signal,
    scope,
  );
}

function jsonRpcError(id: string | number, error: { code: number; message: string; data?: unknown }, status = 200) {
  const { code, message, data } = error;
  return Response.json({ jsonrpc: "2.0", id, error: { code, message, data } }, { status });
}
