/** `subscriptions/listen` with `taskIds`: the complete task, pushed at each change. */
import * as z from "zod";
import { CLIENT_CAPABILITIES, ErrorCode, ProtocolError, SERVER_INFO, SUBSCRIPTION_ID } from "../../core/tools/mcp.ts";
import { eventStream } from "../http/event-stream.ts";
import type { RequestScope } from "../http/request.ts";
import { missingTasksCapability, orUnavailable, type TaskService } from "./service.ts";
import { showsForms, TASKS } from "./task.ts";
import { type Watched, watchTasks } from "./watch.ts";

/** The most tasks one subscription takes. */
const MAX_TASKS = 100;

interface ListenMessage {
  id: string | number;
  params: Record<string, unknown>;
}

function isTaskFilter(notifications: unknown): boolean {
  return typeof notifications === "object" && notifications !== null && "taskIds" in notifications;
}

const Listen = z.object({
  id: z.union([z.string(), z.number()]),
  params: z.object({
    _meta: z.looseObject({
      [CLIENT_CAPABILITIES]: z.looseObject({
        extensions: z.record(z.string(), z.unknown()).optional(),
        elicitation: z
          .looseObject({ form: z.looseObject({}).optional(), url: z.looseObject({}).optional() })
          .optional(),
      }),
    }),
    notifications: z.object({ taskIds: z.array(z.string()).min(1).max(MAX_TASKS) }),
  }),
});

/**
 * Serves a `subscriptions/listen` request that names tasks. One that names none is for the SDK, which also says
 * whether the request is well-formed: it knows no `taskIds`, so what it acknowledges is answered here instead.
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
  if (!isTaskFilter(message.params.notifications)) return response;
  await response.body?.cancel();

  const listen = Listen.safeParse(message);
  if (!listen.success) {
    const reason = `notifications.taskIds: a list of 1 to ${MAX_TASKS} task ids is required`;
    return jsonRpcError(message.id, { code: ErrorCode.InvalidParams, message: reason });
  }
  const { id, params } = listen.data;
  const declared = params._meta[CLIENT_CAPABILITIES];
  if (declared.extensions?.[TASKS] === undefined) {
    return jsonRpcError(id, missingTasksCapability(), 400);
  }

  const taskIds = [...new Set(params.notifications.taskIds)];
  let tasks: Watched[];
  try {
    const found = await orUnavailable(service, Promise.all(taskIds.map((taskId) => find(service, taskId, scope))));
    tasks = found.filter((task) => task !== undefined);
  } catch (error) {
    if (error instanceof ProtocolError) return jsonRpcError(id, error);
    throw error;
  }
  return eventStream(
    async (send, signal) => {
      const _meta = { [SUBSCRIPTION_ID]: id };
      const notify = (method: string, params: object) => send({ jsonrpc: "2.0", method, params: { ...params, _meta } });
      notify("notifications/subscriptions/acknowledged", {
        notifications: { taskIds: tasks.map((task) => task.taskId) },
      });
      const onChange = (task: object) => notify("notifications/tasks", task);
      const telling = { showsForms: showsForms(declared), kept: service.kept };
      await watchTasks(scope.store, tasks, telling, onChange, signal);
      // All have ended: nothing more is to come, which the protocol says by answering the request.
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

/** The task of an id; undefined for an id that is no task's, or not this caller's. */
async function find(
  { handles }: TaskService,
  taskId: string,
  { caller, store }: RequestScope,
): Promise<Watched | undefined> {
  const job = await handles.open(taskId, caller.id);
  const promise = job && (await store.get(job.name));
  if (!promise || (job.begun !== undefined && promise.createdAt !== job.begun)) return undefined;
  return { taskId, name: job.name };
}

function jsonRpcError(id: string | number, error: { code: number; message: string; data?: unknown }, status = 200) {
  const { code, message, data } = error;
  return Response.json({ jsonrpc: "2.0", id, error: { code, message, data } }, { status });
}
