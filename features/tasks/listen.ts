/** `subscriptions/listen`: what it costs, and who answers it. */
import type { Method, RequestScope } from "../../core/tools/index.ts";
import type { TaskService } from "./service.ts";
import { MAX_RESOURCES, MAX_TASKS } from "./task.ts";

/** Resources whose changes can be reported. For each of them a job is started. */
interface WatchableResources {
  weightOfRead(uri: unknown): number;
  /** Reports changes of resources until `signal` is aborted. */
  watch(
    scope: RequestScope,
    uris: readonly string[],
    signal: AbortSignal,
    onUpdated: (uri: string) => void,
  ): Promise<void>;
}

/** `resources`: undefined if no changes of resources are reported. `info` describes the server. */
export const listenMethod = (
  service: TaskService,
  info: object,
  resources: WatchableResources | undefined,
): Method => ({
  cost({ notifications }) {
    const { taskIds, resourceSubscriptions: uris } = Object(notifications);
    const ofResources = resources
      ? firstOf(uris, MAX_RESOURCES).reduce((sum: number, uri) => sum + resources.weightOfRead(uri), 0)
      : 0;
    return {
      access: ofResources > 0 ? ["read", "write"] : ["read"],
      weight: Math.max(1, firstOf(taskIds, MAX_TASKS).length) + ofResources,
      streams: true,
    };
  },
  async answer({ message, request, scope, sdk }) {
    const { subscribe } = await import("./subscribe.ts");
    const watch = resources?.watch.bind(resources, scope);
    return subscribe(service, info, scope, { request, message, watch }, sdk);
  },
});

/** The members of a list in a request, up to the most that it may have. */
const firstOf = (list: unknown, max: number): unknown[] => (Array.isArray(list) ? list.slice(0, max) : []);
