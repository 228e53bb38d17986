import { EventSourceParserStream } from "eventsource-parser/stream";
import { until } from "../../testing/stack/program.ts";
import { rpc, rpcHeaders, rpcMessage, TASKS } from "../support/rpc.ts";
import { type Stack, type StackOptions, startStack } from "../support/stack.ts";

/** The product's jobs and tools and those of the conformance suite, which fail and ask in further ways. */
export const TASK_PROGRAMS = {
  edge: "test/conformance/conformance-edge.ts",
  worker: "test/conformance/conformance-worker.ts",
};

export const startTaskStack = (options: StackOptions = {}): Promise<Stack> =>
  startStack({ programs: TASK_PROGRAMS, ...options });

/** The capabilities of a client that understands tasks and can ask its user. */
export const CAPABILITIES = { elicitation: {}, ...TASKS };

/** A task as it comes over the wire. */
// oxlint-disable-next-line typescript/no-explicit-any -- the tests know its shape
export type WireTask = Record<string, any> & { taskId: string; status: string };

/** The requests of a client that understands tasks. Each rejects with the JSON-RPC error of its answer. */
export function tasksAt(url: string, token?: string, capabilities: object = CAPABILITIES) {
  const request = async (method: string, params: object) => {
    const { result, error } = await rpc(url, method, params, { capabilities, token });
    if (error) throw Object.assign(new Error(error.message), error);
    return result;
  };
  const get = (taskId: string): Promise<WireTask> => request("tasks/get", { taskId });
  return {
    call: (name: string, args: object): Promise<WireTask> => request("tools/call", { name, arguments: args }),
    get,
    update: (taskId: string, inputResponses: object) => request("tasks/update", { taskId, inputResponses }),
    cancel: (taskId: string) => request("tasks/cancel", { taskId }),
    /** Waits until the task has the status, or until `condition` holds for it, and resolves with the task. */
    reaches(taskId: string, condition: string | ((task: WireTask) => boolean), ms?: number): Promise<WireTask> {
      const holds = typeof condition === "string" ? (task: WireTask) => task.status === condition : condition;
      return until(
        `the task to be ${condition}`,
        async () => {
          const task = await get(taskId);
          return holds(task) ? task : undefined;
        },
        ms,
      );
    },
  };
}

export const accept = (content: object) => ({ action: "accept", content });

/** An open `subscriptions/listen` stream. */
export interface Subscription extends AsyncDisposable {
  /** Everything received so far. */
  readonly messages: readonly Message[];
  /** The tasks in the notifications received so far. */
  tasks(taskId?: string): WireTask[];
  /** Waits for a notification that the task has the status, or for which `condition` holds. */
  told(taskId: string, condition: string | ((task: WireTask) => boolean)): Promise<WireTask>;
  /** Resolves when the server has ended the stream. */
  readonly ended: Promise<void>;
  leave(): void;
}

interface Message {
  method?: string;
  // oxlint-disable-next-line typescript/no-explicit-any -- the tests know its shape
  params?: any;
  // oxlint-disable-next-line typescript/no-explicit-any -- the tests know its shape
  result?: any;
}

export async function subscribe(
  url: string,
  wanted: string[] | { resourceSubscriptions: string[] },
  token?: string,
  capabilities: object = CAPABILITIES,
): Promise<Subscription> {
  const left = new AbortController();
  const params = { notifications: Array.isArray(wanted) ? { taskIds: wanted } : wanted };
  const response = await fetch(url, {
    method: "POST",
    headers: { ...rpcHeaders("subscriptions/listen"), ...(token && { authorization: `Bearer ${token}` }) },
    body: JSON.stringify({ ...rpcMessage("subscriptions/listen", params, capabilities), id: "s" }),
    signal: left.signal,
  });
  if (!response.body || !response.ok) throw new Error(`not subscribed: ${response.status} ${await response.text()}`);
  const messages: Message[] = [];
  const events = response.body.pipeThrough(new TextDecoderStream()).pipeThrough(new EventSourceParserStream());
  const ended = (async () => {
    for await (const { data } of events) messages.push(JSON.parse(data));
  })();
  ended.catch(() => {}); // rejects when the client leaves
  const tasks = (taskId?: string): WireTask[] =>
    messages.flatMap(({ method, params }) => {
      if (method !== "notifications/tasks" || (taskId && params.taskId !== taskId)) return [];
      const { _meta, ...task } = params;
      return [task];
    });
  return {
    messages,
    tasks,
    told(taskId, condition) {
      const holds = typeof condition === "string" ? (task: WireTask) => task.status === condition : condition;
      return until(`to be told that the task is ${condition}`, () => tasks(taskId).find(holds));
    },
    ended,
    leave: () => left.abort(),
    async [Symbol.asyncDispose]() {
      left.abort();
    },
  };
}
