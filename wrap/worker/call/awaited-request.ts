/** The request that a job waits for, and its outcomes. Steps store both, so their fields must keep their names. */
import type { Question, Step } from "../../../core/author/index.ts";
import { isRecord } from "../../../core/resonate/index.ts";
import type { SendRecord } from "../../call-job.ts";
import type { Connection } from "../connection/connection.ts";
import type { JsonObject, ResumableStream, Session } from "../host/open-request.ts";
import { tidyForm, withoutNulls } from "../protocol-values.ts";
import type { CallEvent, CallInFlight } from "./call-in-flight.ts";
import { storeAnswer } from "./outcome.ts";

/** A task at the server. */
export interface RemoteTask {
  taskId: string;
  /** The session in which the task was created. */
  session: Session;
  /** The poll interval that the server asks for, in milliseconds. */
  pollInterval?: number;
}

/** A request whose answer the job waits for, and the data with which another process continues it. */
export interface AwaitedRequest {
  /** The number of its first event. */
  base: number;
  /** When the job recorded that it would send the request, if it is not repeatable. */
  sentAt?: string;
  /** The request as a program host knows it. The host recognizes it when it is sent again. */
  hostRequest?: SendRecord["hostRequest"];
  request:
    | { kind: "call"; inputs?: JsonObject; state?: unknown }
    /** `stream`: where the stream of the task's result can be resumed. A resumed stream repeats the task's questions. */
    | ({ kind: "task"; stream?: ResumableStream } & RemoteTask)
    | ({ kind: "stream" } & ResumableStream);
}

/** The outcome of a step: an event of a request, or the next thing to do if the request did not bring the final result. */
export type StepOutcome =
  | CallEvent
  /** The outcome is lost, and the call may be repeated. */
  | { kind: "lost"; why: string }
  | { kind: "input"; requests: JsonObject; state?: unknown }
  | ({ kind: "task"; isLegacy: boolean } & RemoteTask);

/** The request in the form in which another process can continue it, from event `base` on. */
export function continuation(
  awaitedRequest: AwaitedRequest,
  base: number,
  event: Extract<CallEvent, { kind: "stream" | "host" }>,
): AwaitedRequest {
  if (event.kind === "host")
    return { ...awaitedRequest, base, hostRequest: { host: event.host, request: event.request } };
  const { request } = awaitedRequest;
  return { base, request: request.kind === "task" ? { ...request, stream: event } : event };
}

/** Whether a call becomes a task of the 2025-11-25 revision, whose id survives a crash. */
export function isTaskCall(connection: Connection, tool: string): boolean {
  const { tasks } = (connection.client.getServerCapabilities() ?? {}) as {
    tasks?: { requests?: { tools?: { call?: unknown } } };
  };
  if (connection.era !== "legacy" || tasks?.requests?.tools?.call === undefined) return false;
  const support = connection.tools.find(({ name }) => name === tool)?.execution?.taskSupport;
  return support === "required" || support === "optional";
}

/** Interprets an event of a request; `server`: the name of the server whose tool was called. */
export async function outcomeOf(
  step: Step,
  event: CallEvent,
  { request }: AwaitedRequest,
  { options: { session }, logs }: Pick<CallInFlight, "options" | "logs">,
  server: string | undefined,
): Promise<StepOutcome> {
  if (event.kind !== "result") return event;
  const result = withoutNulls(event.result);
  const finalOutcome = async (): Promise<StepOutcome> => ({
    kind: "result",
    result: await storeAnswer(step, result, server, logs),
  });
  if (request.kind !== "call") return finalOutcome();
  if (result.resultType === "input_required") {
    const requests = (result.inputRequests ?? {}) as JsonObject;
    return { kind: "input", requests, ...(result.requestState !== undefined && { state: result.requestState }) };
  }
  const isLegacy = result.resultType !== "task";
  const task = (isLegacy ? result.task : result) as JsonObject | undefined;
  if (typeof task?.taskId !== "string") return finalOutcome();
  const pollInterval = Number(isLegacy ? task.pollInterval : task.pollIntervalMs);
  return { kind: "task", taskId: task.taskId, isLegacy, session, ...(pollInterval > 0 && { pollInterval }) };
}

/**
 * A server's question as the engine asks it, without patterns: the protocol's forms have none, and the edge could take
 * extremely long to match a caller's text against a hostile pattern.
 */
export function questionOf({ message, requestedSchema }: JsonObject): Question {
  const { properties, ...schema } = isRecord(requestedSchema) ? withoutPatterns(tidyForm(requestedSchema)) : {};
  // A form of another shape could not be read from the job's progress feed, and nobody could answer.
  const form = { ...schema, type: "object" as const, properties: isRecord(properties) ? properties : {} };
  return { message: String(message ?? ""), requestedSchema: form, keepsIntegers: true };
}

function withoutPatterns(schema: JsonObject): JsonObject {
  // A field may be named `pattern`; its schema is an object.
  const isPattern = (key: string, value: unknown) => key === "pattern" && typeof value === "string";
  return JSON.parse(JSON.stringify(schema, (key, value) => (isPattern(key, value) ? undefined : value)));
}
