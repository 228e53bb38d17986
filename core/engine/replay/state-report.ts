import type { Runtime } from "../runtime.ts";
import type { ExecutionState, Progress } from "../state.ts";
import type { Commands } from "./commands/commands.ts";
import type { Spending } from "./commands/spending.ts";
import type { FunctionPass } from "./function-pass.ts";

/** Tells the runtime what the job is doing. */
export class StateReport {
  readonly #commands: Commands;
  readonly #pass: FunctionPass;
  readonly #spending: Spending | undefined;
  readonly #runtime: Runtime;
  /** The newest progress that the function or a step has reported. */
  newestProgress: Progress | undefined;

  constructor(commands: Commands, pass: FunctionPass, spending: Spending | undefined, runtime: Runtime) {
    this.newestProgress = runtime.run?.before.progress;
    this.#commands = commands;
    this.#pass = pass;
    this.#spending = spending;
    this.#runtime = runtime;
  }

  /** Takes the progress that the function or a step reports. */
  progress(done: number | string, total?: number, message?: string): void {
    const details = { ...(total !== undefined && { total }), ...(message !== undefined && { message }) };
    this.newestProgress = typeof done === "string" ? { message: done } : { done, ...details };
    if (!this.#pass.isReplaying) this.send();
  }

  send(): void {
    const state = stateOf(this.#commands);
    const { onState, run } = this.#runtime;
    // Clients would take a question of the same name in a later run for the one that they answered.
    if (run) for (const each of state.questions) each.key = `${each.key}, run ${run.n}`;
    onState?.({ ...state, progress: this.newestProgress, spent: this.#spending?.all, run: run?.n });
  }
}

function stateOf({ open: commands, emitted: all, events }: Commands): ExecutionState {
  const outputs = { emitted: all - events || undefined, events: events || undefined };
  const state: ExecutionState = { steps: [], awaiting: 0, callbacks: [], questions: [], ...outputs };
  for (const {
    kind,
    path,
    attempts,
    runningSince,
    lastError,
    pause,
    awaitedPromise,
    question,
    isRunning,
  } of commands) {
    if (kind === "await") state.awaiting += 1;
    else if (kind === "callback") state.callbacks.push(path);
    else if (question && awaitedPromise) state.questions.push({ key: path, promiseId: awaitedPromise.id, question });
    else if (awaitedPromise?.due !== undefined) {
      state.sleepingUntil = Math.min(awaitedPromise.due, state.sleepingUntil ?? awaitedPromise.due);
    } else if (isRunning || pause) {
      state.steps.push({
        name: path,
        attempt: attempts + 1,
        since: runningSince,
        error: lastError,
        next: pause?.due,
      });
    }
  }
  return state;
}
