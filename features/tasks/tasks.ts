/** The Tasks extension: calls whose job clients follow as a task, and the methods for that. */
import type { EdgeFeature } from "../../core/feature.ts";
import { type CallFeature, isInputRequired, type Method, TASKS_EXTENSION } from "../../core/tools/index.ts";
import { taskMethods } from "./methods.ts";
import { createTask, missingTasksCapability, type TaskService } from "./service.ts";

/** `listen`: `subscriptions/listen`. */
export const tasks = (service: TaskService, listen: Method): EdgeFeature => ({
  name: "tasks",
  ...taskCalls(service),
  methods: { ...taskMethods(service), "subscriptions/listen": listen },
  capabilities: (era) => (era === "modern" ? { extensions: { [TASKS_EXTENSION]: {} } } : {}),
});

const taskCalls = (service: TaskService): CallFeature => ({
  call({ start, tasksOnly }) {
    if (!start) return undefined;
    return async (call, next) => {
      const { request, context, args, note } = call;
      const { scope, declaresTasks } = request;
      if (tasksOnly && !declaresTasks) throw missingTasksCapability();
      if (!declaresTasks) return next();
      const started = await start(args, context);
      if (isInputRequired(started)) return started;
      scope.requestLog.job = scope.store.logName(started.name);
      return createTask(service, scope.caller, started, note);
    };
  },
  context: ({ declaresTasks, showsForms }) => (declaresTasks ? { tasks: true, asks: showsForms } : {}),
  returnsAtOnce: ({ start }, { declaresTasks }) => declaresTasks && start !== undefined,
});

/** For a deployment that offers no tasks: refuses tools that only clients with tasks can call. */
export const noTasks: CallFeature = {
  call: ({ tasksOnly }) =>
    tasksOnly
      ? async (): Promise<never> => {
          throw missingTasksCapability();
        }
      : undefined,
};
