import type { Runtime } from "../runtime.ts";
import type { ExecutionState, Progress } from "../state.ts";
import type { Commands } from "./commands/commands.ts";
import type { Spending } from "./commands/spending.ts";
import type { FunctionRun } from "./function-run.ts";

/** Tells the runtime what the job is doing. */
export class StateReport {
  readonly #commands: Pick<Commands, "open" | "emitted" | "events">;
  readonly #run: Pick<FunctionRun, "isReplaying">;
  readonly #spending: Pick<Spending, "all">;
  readonly #onState: Runtime["onState"];
  #progress: Progress | undefined;
  readonly #n: number | undefined;

  constructor(
    commands: Pick<Commands, "open" | "emitted" | "events">,
    run: Pick<FunctionRun, "isReplaying">,
    spending: Pick<Spending, "all">,
    { onState, run: job }: Pick<Runtime, "onState" | "run">,
  ) {
    this.#progress = job?.before.progress;
    this.#n = job?.n;
    this.#commands = commands;
    this.#run = run;
    this.#spending = spending;
    this.#onState = onState;
  }

  get newest(): Progress | undefined {
    return this.#progress;
  }

  /** Takes the progress that the function or a step reports. */
  progress(progress: Progress): void {
    this.#progress = progress;
    if (!this.#run.isReplaying) this.tell();
  }

  tell(): void {
    const { all: spent } = this.#spending;
    const state = stateOf(this.#commands, this.#progress);
    const n = this.#n;
    // Clients would take a question of the same name in a later run for the one that they answered.
    if (n !== undefined) for (const each of state.questions) each.key = `${each.key}, run ${n}`;
    this.#onState?.({ ...state, ...(spent && { spent }), ...(n !== undefined && { run: n }) });
  }
}

function stateOf(
  { open: commands, emitted: all, events }: Pick<Commands, "open" | "emitted" | "events">,
  progress?: Progress,
): ExecutionState {
  const emitted = all - events;
  const told = { ...(progress && { progress }), ...(emitted > 0 && { emitted }), ...(events > 0 && { events }) };
  const state: ExecutionState = { steps: [], awaiting: 0, callbacks: [], questions: [], ...told };
  for (const { kind, path, attempts, runningSince, lastError, pause, awaited, question, isRunning } of commands) {
    if (kind === "await") state.awaiting += 1;
    else if (kind === "callback") state.callbacks.push(path);
    else if (question && awaited) state.questions.push({ key: path, promiseId: awaited.id, question });
    else if (awaited?.due !== undefined) {
      state.sleepingUntil = Math.min(awaited.due, state.sleepingUntil ?? awaited.due);
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
