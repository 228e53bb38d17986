import type { Due, Schedule, State, StoredPromise, Task } from "./records.ts";

/** The whole state in memory, for simulations and tests. */
export class MemoryState implements State {
  readonly promises = new Map<string, StoredPromise>();
  readonly tasks = new Map<string, Task>();
  readonly schedules = new Map<string, Schedule>();

  promise(id: string): StoredPromise | undefined {
    return this.promises.get(id);
  }

  task(id: string): Task | undefined {
    return this.tasks.get(id);
  }

  schedule(id: string): Schedule | undefined {
    return this.schedules.get(id);
  }

  branch(name: string): StoredPromise[] {
    const promises = [...this.promises.values()].filter(({ tags }) => tags["resonate:branch"] === name);
    return promises.sort((a, b) => (a.id < b.id ? -1 : 1));
  }

  awaitedBy(task: string): StoredPromise[] {
    return [...this.promises.values()].filter(({ callbacks }) => callbacks.has(task));
  }

  putPromise(promise: StoredPromise): void {
    this.promises.set(promise.id, promise);
  }

  putTask(task: Task): void {
    this.tasks.set(task.id, task);
  }

  putSchedule(schedule: Schedule): void {
    this.schedules.set(schedule.id, schedule);
  }

  deleteSchedule(id: string): void {
    this.schedules.delete(id);
  }

  due(now: number): Due {
    const ids = <V extends { id: string }>(entries: Map<string, V>, isDue: (each: V) => boolean) =>
      [...entries.values()].filter(isDue).map(({ id }) => id);
    return {
      promises: ids(this.promises, ({ state, timeoutAt }) => state === "pending" && timeoutAt <= now),
      tasks: ids(this.tasks, ({ timer }) => timer !== undefined && timer <= now),
      schedules: ids(this.schedules, ({ nextRunAt }) => nextRunAt <= now),
    };
  }
}
