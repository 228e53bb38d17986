/** What a job is doing, as it is told to whoever looks. */
import type { Question } from "../definitions/context.ts";
import type { Command } from "./command.ts";

export interface ExecutionState {
  /** Steps that run or wait for their next attempt: since when, what the last attempt ended with, when the next is due. */
  steps: { name: string; attempt: number; since: number; error?: string; next?: number }[];
  /** The end of the sleep that ends first, in milliseconds since the epoch. */
  sleepingUntil?: number;
  /** How many other jobs it waits for. */
  awaiting: number;
  questions: { key: string; promiseId: string; question: Question }[];
  progress?: { done?: number; total?: number; message?: string };
}

export function stateOf(ops: readonly Command[], progress: ExecutionState["progress"]): ExecutionState {
  const state: ExecutionState = { steps: [], awaiting: 0, questions: [], ...(progress && { progress }) };
  for (const { kind, path, attempts, runningSince, lastError, pause, awaited: external, question, isRunning } of ops) {
    if (kind === "await") state.awaiting += 1;
    else if (question && external) state.questions.push({ key: path, promiseId: external.id, question });
    else if (external?.due !== undefined) {
      state.sleepingUntil = Math.min(external.due, state.sleepingUntil ?? external.due);
    } else if (isRunning || pause) {
      state.steps.push({
        name: path,
        attempt: attempts + 1,
        since: runningSince,
        ...(lastError !== undefined && { error: lastError }),
        ...(pause && { next: pause.due }),
      });
    }
  }
  return state;
}
