/** What a job waits for at a wrapped server, and what comes of it. */
import type { Question, Step } from "../../core/definitions/context.ts";
import type { Connection } from "./connection.ts";
import { CallRefused } from "./errors.ts";
import type { CallEvent } from "./live.ts";
import { keptAnswer } from "./outcome.ts";
import type { Resumable, Session } from "./request-state.ts";

export type JsonObject = Record<string, unknown>;

/** A task at the server, and the session that it was made in. */
export interface TaskThere {
  taskId: string;
  place: Session;
  /** How often its server wants it to be looked at, in milliseconds. */
  every?: number;
}

/** A request that a program's keeper has, or is to have. */
export interface Kept {
  keeper: string;
  request: string;
}

/** What is written down before a call that is made at most once is sent. */
export interface Sending {
  at: string;
  kept?: Kept;
}

/** A request whose answer the job waits for, and how it is made again in another process. */
export interface Segment {
  /** The number of its first event. */
  base: number;
  /** When it was written down that it would be sent, for one that is sent at most once. */
  sentAt?: string;
  /** A request that the keeper of a program knows: sent again to it, it is not made again. */
  kept?: Kept;
  request:
    | { kind: "call"; inputs?: JsonObject; state?: unknown }
    /** `stream`: how the stream of its result can be picked up, which tells again what was asked over it. */
    | ({ kind: "task"; stream?: Resumable } & TaskThere)
    | ({ kind: "stream" } & Resumable);
}

/** What a step has found out: an event of a request, or what its result asks for. */
export type Leg =
  | CallEvent
  /** Nothing will be heard of it any more, and it may be made again. */
  | { kind: "lost"; why: string }
  | { kind: "input"; requests: JsonObject; state?: unknown }
  | { kind: "task"; taskId: string; every?: number; isLegacy: boolean; place: Session };

/** What a request becomes once its stream can be picked up. */
export function resumable(request: Segment["request"], stream: Resumable): Segment["request"] {
  return request.kind === "task" ? { ...request, stream } : { kind: "stream", ...stream };
}

/** Whether a call is made as a task of the 2025-11-25 revision: its id is found again after a crash. */
export function asTask(connection: Connection, tool: string): boolean {
  const { tasks } = (connection.client.getServerCapabilities() ?? {}) as {
    tasks?: { requests?: { tools?: { call?: unknown } } };
  };
  if (connection.era !== "legacy" || tasks?.requests?.tools?.call === undefined) return false;
  const support = connection.tools.find(({ name }) => name === tool)?.execution?.taskSupport;
  return support === "required" || support === "optional";
}

/** What an event of a request is for the job. */
export async function legOf(step: Step, event: CallEvent, { request }: Segment, place: Session): Promise<Leg> {
  if (event.kind !== "result") return event;
  const { result } = event;
  const ended = async (): Promise<Leg> => ({ kind: "result", result: await keptAnswer(step, result) });
  if (request.kind !== "call") return ended();
  if (result.resultType === "input_required") {
    const requests = (result.inputRequests ?? {}) as JsonObject;
    return { kind: "input", requests, ...(result.requestState !== undefined && { state: result.requestState }) };
  }
  const isLegacy = result.resultType !== "task";
  const task = (isLegacy ? result.task : result) as JsonObject | undefined;
  if (typeof task?.taskId !== "string") return ended();
  const every = Number(isLegacy ? task.pollInterval : task.pollIntervalMs);
  return { kind: "task", taskId: task.taskId, isLegacy, place, ...(every > 0 && { every }) };
}

/** Whether the session is one that the server does not know any more: then it has not looked at the request. */
export const isSessionOver = (error: unknown): boolean =>
  error instanceof CallRefused && (error.status === 404 || (error.status === 400 && /session/i.test(error.message)));

/**
 * A question as the engine asks it. The protocol's forms have no patterns, and one of a server's would be run by the edge, on
 * what a caller writes: it can be made so that this takes as good as for ever.
 */
export function questionOf({ message, requestedSchema }: JsonObject): Question {
  const schema = (requestedSchema ?? { type: "object", properties: {} }) as Question["requestedSchema"];
  return { message: String(message ?? ""), requestedSchema: withoutPatterns(schema) as Question["requestedSchema"] };
}

function withoutPatterns(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(withoutPatterns);
  if (typeof schema !== "object" || schema === null) return schema;
  // A field may be called so: its schema is an object.
  const entries = Object.entries(schema).filter(([key, value]) => key !== "pattern" || typeof value !== "string");
  return Object.fromEntries(entries.map(([key, value]) => [key, withoutPatterns(value)]));
}

/** Resolves after a time, or when the signal is aborted. */
export function elapsed(ms: number, signal: AbortSignal): Promise<void> {
  const over = Promise.withResolvers<void>();
  const timer = setTimeout(over.resolve, ms);
  const stop = () => over.resolve();
  signal.addEventListener("abort", stop, { once: true });
  return over.promise.finally(() => {
    clearTimeout(timer);
    signal.removeEventListener("abort", stop);
  });
}
