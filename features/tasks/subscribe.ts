/**
 * `subscriptions/listen` with `taskIds`, or for resources of upstream servers: pushes the complete task at each change,
 * and reports each change of a resource.
 */
import * as z from "zod";
import {
  type CurrentJob,
  currentJobOf,
  type DurablePromise,
  doingOf,
  followPromises,
  mayShow,
  type RemoteStore,
  type Settlement,
} from "../../core/jobs/index.ts";
import type { Channel } from "../../core/resonate/index.ts";
import {
  abilitiesOf,
  CLIENT_CAPABILITIES,
  type DeclaredCapabilities,
  ErrorCode,
  findPromise,
  ProtocolError,
  type RequestScope,
  SERVER_INFO,
  SUBSCRIPTION_ID,
  withMedia,
} from "../../core/tools/index.ts";
import { eventStream, isStream } from "../../functions/http/event-stream.ts";
import { missingTasksCapability, orUnavailable, type TaskService, withFiles } from "./service.ts";
import { type Audience, type DetailedTask, detailedTask, MAX_RESOURCES, MAX_TASKS } from "./task.ts";

interface ListenMessage {
  id: string | number;
  params: Record<string, unknown>;
}

const Notifications = z.object({
  taskIds: z.array(z.string()).min(1).max(MAX_TASKS).optional(),
  resourceSubscriptions: z.array(z.string()).max(MAX_RESOURCES).default([]),
});

const ACCEPTED_NOTIFICATIONS = `notifications: accepted are taskIds, a list of 1 to ${MAX_TASKS} task ids, and resourceSubscriptions, one of up to ${MAX_RESOURCES} URIs`;

/** Reports changes of resources until `signal` is aborted. */
type Watch = (uris: readonly string[], signal: AbortSignal, onUpdated: (uri: string) => void) => Promise<void>;

/**
 * Serves a `subscriptions/listen` request. The SDK judges whether the request is well-formed, and answers it if it names neither
 * tasks nor resources that can be watched. It does not know `taskIds`, so its acknowledgement of other requests is replaced.
 */
export async function subscribe(
  service: TaskService,
  serverInfo: object,
  scope: RequestScope,
  { request, message, watch }: { request: Request; message: ListenMessage; watch: Watch | undefined },
  sdk: () => Promise<Response>,
): Promise<Response> {
  const response = await sdk();
  if (!isStream(response)) return response;
  const { id, params } = message;
  const filter = Object(params.notifications);
  if (!("taskIds" in filter) && !(watch && "resourceSubscriptions" in filter)) return response;
  const over = response.body?.cancel();
  // The slot is kept for the stream that follows.
  scope.slot();
  await over;

  const { data: notifications } = Notifications.safeParse(params.notifications);
  if (!notifications) return jsonRpcError(id, { code: ErrorCode.InvalidParams, message: ACCEPTED_NOTIFICATIONS });
  // The SDK has checked their form.
  const { [CLIENT_CAPABILITIES]: declared } = { ...(params._meta as { [CLIENT_CAPABILITIES]?: DeclaredCapabilities }) };
  const { declaresTasks, showsForms } = abilitiesOf(declared);
  const { taskIds: requestedIds, resourceSubscriptions: uris } = notifications;
  if (requestedIds && !declaresTasks) return jsonRpcError(id, missingTasksCapability(), 400);

  let tasks: WatchedTask[];
  try {
    tasks = await findTasks(service, scope, [...new Set(requestedIds)]);
  } catch (error) {
    if (error instanceof ProtocolError) return jsonRpcError(id, error);
    throw error;
  }
  return eventStream(
    async ({ send, signal }) => {
      const _meta = { [SUBSCRIPTION_ID]: id };
      const notify = (method: string, params: object) => send({ jsonrpc: "2.0", method, params: { ...params, _meta } });
      notify("notifications/subscriptions/acknowledged", {
        notifications: {
          ...(requestedIds && { taskIds: tasks.map(({ taskId }) => taskId) }),
          ...(watch && uris.length > 0 && { resourceSubscriptions: uris }),
        },
      });
      const onChange = async (task: DetailedTask, promise: DurablePromise) =>
        notify("notifications/tasks", await withFiles(service, task, promise, scope.caller));
      const audience = { showsForms, retentionMs: service.retentionMs };
      const onUpdated = (uri: string) => notify("notifications/resources/updated", { uri });
      await Promise.all([watchTasks(scope.store, tasks, audience, onChange, signal), watch?.(uris, signal, onUpdated)]);
      // All tasks have ended; by the protocol, the response to the request says that nothing more will come.
      send({
        jsonrpc: "2.0",
        id,
        result: { resultType: "complete", _meta: { ..._meta, [SERVER_INFO]: serverInfo } },
      });
    },
    { disconnected: request.signal, terms: scope },
  );
}

/** The tasks of these ids that exist. */
async function findTasks(
  service: TaskService,
  scope: RequestScope,
  taskIds: readonly string[],
): Promise<WatchedTask[]> {
  const find = async (taskId: string): Promise<WatchedTask[]> => {
    const promise = await findPromise(service.handles, taskId, { caller: scope.caller, store: scope.store });
    if (!promise) return [];
    return [{ taskId, name: promise.name, page: await service.urlOf(promise.name, scope.caller) }];
  };
  return (await orUnavailable(service, Promise.all(taskIds.map(find)))).flat();
}

function jsonRpcError(id: string | number, error: { code: number; message: string; data?: unknown }, status = 200) {
  const { code, message, data } = error;
  return Response.json({ jsonrpc: "2.0", id, error: { code, message, data } }, { status });
}

/** A task that is watched, and the name of its job. */
interface WatchedTask {
  taskId: string;
  name: string;
  /** The address of the job's page, which is the same in each report. */
  page: string | undefined;
}

type OnChange = (task: DetailedTask, promise: DurablePromise) => Promise<void>;

/**
 * Reports each task as soon as it has more to say than "working", and again at each change, until all have ended or `signal`
 * aborts. The Resonate server pushes changes over one connection for all tasks; {@link followPromises} says when the promises are
 * read instead.
 */
async function watchTasks(
  store: RemoteStore,
  tasks: readonly WatchedTask[],
  audience: Omit<Audience, "now" | "page">,
  onChange: OnChange,
  signal: AbortSignal,
): Promise<void> {
  if (tasks.length === 0) return;
  const allEnded = new AbortController();
  const over = AbortSignal.any([signal, allEnded.signal]);
  const watchers = new Map(tasks.map((task) => [task.name, watcher(store, task, audience, onChange, over)]));
  const check = async (name: string, channel: Channel | undefined) => {
    if (!(await watchers.get(name)?.(channel))) return;
    watchers.delete(name);
    if (watchers.size === 0) allEnded.abort();
  };
  const names = tasks.map(({ name }) => name);
  await followPromises(
    {
      open: (onNews, until) => store.open(names, onNews, until),
      check: (channel) => Promise.all([...watchers.keys()].map((name) => check(name, channel))),
      onNews: ({ name }: Settlement, channel) => check(name, channel),
    },
    over,
  );
}

/**
 * A function that reports a task if it has changed, and listens for its next change on a channel. It resolves to whether the
 * task has ended. Looks happen one after another, so that reports never go back in time.
 */
function watcher(
  store: RemoteStore,
  { taskId, name, page }: WatchedTask,
  audience: Omit<Audience, "now" | "page">,
  onChange: OnChange,
  signal: AbortSignal,
): (channel: Channel | undefined) => Promise<boolean> {
  let last: Promise<unknown> = Promise.resolve();
  let lastReported: string | undefined;

  const check = async (channel: Channel | undefined) => {
    const current = await (channel ? listenAndRead(store, name, channel, signal) : currentJob(store, name, signal));
    if (!current) return true;
    const promise = await withMedia(store, current.promise, signal);
    const task = detailedTask(taskId, { ...current, promise }, { ...audience, page, now: Date.now() });
    const { taskId: _, createdAt, ttlMs, pollIntervalMs, lastUpdatedAt, ...changes } = task;
    const report = JSON.stringify(changes);
    // The client knows already that the task is working.
    const isNews =
      lastReported !== undefined || task.status !== "working" || doingOf(current, Date.now()) !== undefined;
    // The files' addresses differ each time, and are no news.
    if (isNews && report !== lastReported) await onChange(task, promise);
    lastReported = report;
    return current.promise.state !== "pending";
  };

  return (channel) => {
    const next = last.catch(() => {}).then(() => check(channel));
    last = next;
    return next;
  };
}

async function currentJob(store: RemoteStore, name: string, signal: AbortSignal): Promise<CurrentJob | undefined> {
  const promise = await store.get(name, signal);
  return promise && currentJobOf(store, promise, signal);
}

/** Listens before it reads, so that no change in between goes unnoticed. */
async function listenAndRead(
  store: RemoteStore,
  name: string,
  channel: Channel,
  signal: AbortSignal,
): Promise<CurrentJob | undefined> {
  for (;;) {
    const promise = await store.listen(name, channel, signal);
    if (!promise) return undefined;
    const current = await currentJobOf(store, promise, signal);
    if (!mayShow(promise, Date.now())) return current;
    const moved = await Promise.all([
      store.feeds.listenToEntry(promise, current.feed.n + 1, channel, signal),
      ...[...current.questions.values()].map(({ promiseId }) => store.feeds.listen(promiseId, channel, signal)),
    ]);
    if (!moved.includes(true)) return current;
  }
}
