/** The methods of the Tasks extension. */
import {
  type CallRequest,
  ErrorCode,
  type Method,
  ProtocolError,
  promiseOf,
  unknownTaskError,
} from "../../core/tools/index.ts";
import { getTask, missingTasksCapability, type TaskService } from "./service.ts";

type Handle = (taskId: unknown, request: CallRequest) => Promise<object>;

export function taskMethods(service: TaskService): Record<string, Method> {
  const { handles, answer } = service;
  /** The client's capabilities are checked before the parameters. */
  const withHandle = (handle: Handle): NonNullable<Method["handle"]> => {
    return async ({ taskId }, request) => {
      if (!request.declaresTasks) throw missingTasksCapability();
      return handle(taskId, request);
    };
  };
  const writes = () => ({ access: ["write"] as const });
  return {
    "tasks/get": {
      form: { params: ["taskId"], namedBy: "taskId" },
      era: "modern",
      cost: () => ({ access: ["read"] }),
      handle: withHandle((taskId, { scope, signal, showsForms }) =>
        getTask(service, taskId, { caller: scope.caller, store: scope.store, signal, showsForms }),
      ),
    },
    "tasks/cancel": {
      era: "modern",
      cost: writes,
      handle: withHandle(async (taskId, { scope, signal }) => {
        const { caller, store } = scope;
        const { name } = await promiseOf(handles, taskId, { caller, store, signal });
        if (!(await store.cancel(name))) throw unknownTaskError();
        return {};
      }),
    },
    "tasks/update": {
      era: "modern",
      cost: writes,
      handle: withHandle(async (taskId, { scope, signal, rawResponses }) => {
        const { caller, store } = scope;
        if (!rawResponses) throw noResponses();
        const promise = await promiseOf(handles, taskId, { caller, store, signal });
        const invalid = await answer(store, promise, rawResponses, signal);
        if (invalid) throw invalidAnswer(invalid.key, invalid.reason);
        return {};
      }),
    },
  };
}

const noResponses = () =>
  new ProtocolError(
    ErrorCode.InvalidParams,
    "Nothing was done: inputResponses: an object of answers by key is required",
  );

function invalidAnswer(key: string, reason: string): ProtocolError {
  const message = `Nothing was done: inputResponses.${key}: ${reason}. The question stays open.`;
  return new ProtocolError(ErrorCode.InvalidParams, message, { key });
}
