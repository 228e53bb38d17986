/**
 * The rules of Resonate's protocol as in server 0.9.8: the answer and the changes of each operation. A state machine
 * carries out one operation at one moment and knows neither a clock nor a database. `docs/resonate.md` lists its
 * differences from 0.9.8.
 */
import type {
  PromiseCreateReq,
  PromiseSettleReq,
  ScheduleCreateReq,
  TaskCreateReq,
  TaskFenceReq,
  TaskHeartbeatReq,
  TaskSuspendReq,
} from "@resonatehq/sdk";
import { CronExpressionParser } from "cron-parser";
import {
  type Change,
  type Due,
  type Operation,
  type Outcome,
  promiseRecord,
  type Schedule,
  type State,
  type StoredPromise,
  type Task,
  taskRecord,
} from "./records.ts";

const TARGET_TAG = "resonate:target";
const BRANCH_TAG = "resonate:branch";

/** After how long an unclaimed task is dispatched again. */
export const RETRY_INTERVAL_MS = 30_000;

/**
 * The limits on a schedule and on the ids of its promises. The tags of such a promise repeat its id, so with these limits it can
 * always be stored.
 */
const MAX_SCHEDULE_BYTES = 1_000_000;
const MAX_SCHEDULED_ID_CHARACTERS = 10_000;

type SettledState = Exclude<StoredPromise["state"], "pending">;
type Settlement = Pick<StoredPromise, "value"> & { promise: StoredPromise; state: SettledState; settledAt: number };
type Answer = [status: number, data: unknown];

/** A request that the state does not allow. Not an `Error`, whose stack is costly: missing records make refusals frequent. */
class Refusal {
  readonly status: number;
  readonly reason: string;

  constructor(status: number, reason: string) {
    this.status = status;
    this.reason = reason;
  }
}

const PROMISE_NOT_FOUND = "Promise not found";
const TASK_NOT_FOUND = "Task not found";

/** Carries out `request` on `state` at `now`. Even a refused request may time out promises. */
export function carryOut(state: State, now: number, request: Operation): Outcome {
  const machine = new StateMachine(state, now);
  const [status, data] = machine.answer(request);
  return { response: { kind: request.kind, head: { status }, data }, changes: machine.changes };
}

/** Handles what is due at `now`: times out promises, dispatches tasks again, and fires schedules. */
export function handleDue(state: State, now: number, due: Due): Change[] {
  const machine = new StateMachine(state, now);
  machine.handleDue(due);
  return machine.changes;
}

/** Puts off a schedule that is due, and that cannot fire, to its next time after `now`. */
export function skip(state: State, now: number, schedule: string): Change[] {
  const machine = new StateMachine(state, now);
  machine.skip(schedule);
  return machine.changes;
}

class StateMachine {
  readonly #state: State;
  readonly #now: number;
  readonly changes: Change[] = [];

  constructor(state: State, now: number) {
    this.#state = state;
    this.#now = now;
  }

  answer(request: Operation): Answer {
    try {
      return this.#answer(request);
    } catch (error) {
      if (error instanceof Refusal) return [error.status, error.reason];
      throw error;
    }
  }

  #answer({ kind, head, data }: Operation): Answer {
    switch (kind) {
      case "promise.get":
        return [200, { promise: promiseRecord(this.#promiseAt(data.id)) }];
      case "promise.create":
        return [200, { promise: promiseRecord(this.#create(data)) }];
      case "promise.settle":
        return [200, { promise: promiseRecord(this.#settleOne(data)) }];
      case "promise.register_callback":
        return this.#registerCallback(data);
      case "promise.register_listener":
        return this.#registerListener(data);
      case "task.get":
        return [200, { task: taskRecord(this.#taskAt(data.id)) }];
      case "task.create":
        return this.#createTask(data);
      case "task.acquire":
        return this.#acquire(data);
      case "task.release":
        this.#dispatch(this.#acquiredTask(data));
        return [200, {}];
      case "task.fulfill":
        this.#acquiredTask(data);
        return [200, { promise: promiseRecord(this.#settleOne(data.action.data)) }];
      case "task.suspend":
        return this.#suspend(data);
      case "task.fence":
        return this.#fence(data, head);
      case "task.heartbeat":
        return this.#heartbeat(data);
      case "task.halt":
        return this.#halt(data);
      case "task.continue":
        return this.#continue(data);
      case "schedule.get":
        return [200, { schedule: this.#scheduleAt(data.id) }];
      case "schedule.create":
        return this.#createSchedule(data);
      case "schedule.delete":
        this.#state.deleteSchedule(this.#scheduleAt(data.id).id);
        this.changes.push({ kind: "schedule", id: data.id });
        return [200, {}];
    }
  }

  handleDue({ promises, tasks, schedules }: Due): void {
    this.#timeOut(promises);
    for (const id of tasks) {
      const task = this.#state.task(id);
      if (task?.timer !== undefined && task.timer <= this.#now) this.#dispatch(task);
    }
    for (const id of schedules) {
      const schedule = this.#state.schedule(id);
      if (schedule && schedule.nextRunAt <= this.#now) this.#fire(schedule);
    }
  }

  // Promises

  #promiseAt(id: string, status = 404, reason = PROMISE_NOT_FOUND): StoredPromise {
    this.#timeOut([id]);
    const promise = this.#state.promise(id);
    if (!promise) throw new Refusal(status, reason);
    return promise;
  }

  /** Returns the promise with this id. Creates it if it is missing, with a task if it has a target. */
  #create(data: PromiseCreateReq["data"], createdAt = this.#now): StoredPromise {
    this.#timeOut([data.id]);
    const existing = this.#state.promise(data.id);
    if (existing) return existing;
    const promise = this.#add(data, createdAt);
    if (promise.tags[TARGET_TAG] === undefined) return promise;
    const task: Task = { id: promise.id, state: "pending", version: 0, resumes: new Set() };
    const delay = Number(promise.tags["resonate:delay"]);
    if (promise.state !== "pending") this.#putTask({ ...task, state: "fulfilled" });
    else if (this.#now < delay) this.#putTask({ ...task, timer: delay });
    else this.#dispatch(task, createdAt);
    return promise;
  }

  #add({ id, timeoutAt, param, tags }: PromiseCreateReq["data"], createdAt: number): StoredPromise {
    const isLate = this.#now >= timeoutAt;
    return this.#putPromise({
      id,
      state: isLate ? timedOutState(tags) : "pending",
      param: param ?? {},
      value: {},
      tags: tags ?? {},
      timeoutAt,
      createdAt: isLate ? Math.min(createdAt, timeoutAt) : createdAt,
      settledAt: isLate ? timeoutAt : null,
      callbacks: new Set(),
      listeners: new Set(),
    });
  }

  #settleOne({ id, state, value = {} }: PromiseSettleReq["data"]): StoredPromise {
    const promise = this.#promiseAt(id);
    if (promise.state === "pending") this.#settle([{ promise, state, value, settledAt: this.#now }]);
    return this.#state.promise(id) ?? promise;
  }

  /** Settles those of the promises that are past their deadline. */
  #timeOut(ids: readonly string[]): void {
    const duePromises = [...new Set(ids)].flatMap((id) => {
      const promise = this.#state.promise(id);
      return promise?.state === "pending" && promise.timeoutAt <= this.#now ? [promise] : [];
    });
    if (duePromises.length === 0) return;
    this.#settle(
      duePromises.map((promise) => ({
        promise,
        state: timedOutState(promise.tags),
        value: promise.value,
        settledAt: promise.timeoutAt,
      })),
    );
  }

  /**
   * Settles promises together. All promises are settled and their own tasks fulfilled before any other task is resumed, so
   * that the order of the settlements makes no difference.
   */
  #settle(settlements: readonly Settlement[]): void {
    const promises = settlements.map(({ promise, ...settlement }) =>
      this.#putPromise({ ...promise, ...settlement, callbacks: new Set(), listeners: new Set() }),
    );
    for (const { id } of promises) this.#fulfill(id);
    for (const { promise } of settlements) for (const awaiter of promise.callbacks) this.#resume(awaiter, promise.id);
    for (const [i, { promise }] of settlements.entries()) {
      const data = { promise: promiseRecord(promises[i] as StoredPromise) };
      for (const address of promise.listeners)
        this.changes.push({ kind: "unblock", address, message: { kind: "unblock", head: {}, data } });
    }
  }

  #registerCallback({ awaited, awaiter }: { awaited: string; awaiter: string }): Answer {
    this.#timeOut([awaited, awaiter]);
    const promise = this.#promiseAt(awaited, 404, "Awaited promise not found");
    const { tags, state } = this.#promiseAt(awaiter, 422, "Awaiter promise not found");
    if (tags[TARGET_TAG] === undefined) throw new Refusal(422, "Awaiter promise has no resonate:target tag");
    if (promise.state !== "pending") {
      if (this.#state.task(awaiter)?.state !== "halted") this.#resume(awaiter, awaited);
    } else if (state === "pending") {
      this.#putPromise({ ...promise, callbacks: new Set(promise.callbacks).add(awaiter) });
    }
    return [200, { promise: promiseRecord(promise) }];
  }

  #registerListener({ awaited, address }: { awaited: string; address: string }): Answer {
    const promise = this.#promiseAt(awaited, 404, "Awaited promise not found");
    if (promise.state === "pending")
      this.#putPromise({ ...promise, listeners: new Set(promise.listeners).add(address) });
    return [200, { promise: promiseRecord(promise) }];
  }

  // Tasks

  #taskAt(id: string): Task {
    this.#timeOut([id]);
    const task = this.#state.task(id);
    if (!task) throw new Refusal(404, TASK_NOT_FOUND);
    return task;
  }

  /** Returns an acquired task if `version` is that of its lease. */
  #acquiredTask({ id, version }: { id: string; version: number }): Task {
    const task = this.#taskAt(id);
    if (task.state !== "acquired") throw new Refusal(409, "Task is not acquired");
    if (task.version !== version) throw new Refusal(409, "Version mismatch");
    return task;
  }

  #createTask({ pid, ttl, action: { data } }: TaskCreateReq["data"]): Answer {
    const { id } = data;
    this.#timeOut([id]);
    const existing = this.#state.task(id);
    if (!existing && this.#state.promise(id)) throw new Refusal(422, "Promise exists without a target");
    if (existing && existing.state !== "pending" && existing.state !== "fulfilled")
      throw new Refusal(409, "Task exists already");
    const promise = existing ? this.#promiseAt(id) : this.#add(data, this.#now);
    let task: Task = existing ?? { id, state: "pending", version: 0, resumes: new Set() };
    if (promise.state === "pending") task = this.#claim(task, pid, ttl);
    else if (!existing) task = this.#putTask({ ...task, state: "fulfilled" });
    const preload = task.state === "acquired" ? this.#preload(promise) : [];
    return [200, { task: taskRecord(task), promise: promiseRecord(promise), preload }];
  }

  #acquire({ id, version, pid, ttl }: { id: string; version: number; pid: string; ttl: number }): Answer {
    const task = this.#taskAt(id);
    const promise = this.#promiseAt(id, 404, TASK_NOT_FOUND);
    if (task.state !== "pending") throw new Refusal(409, "Task is not pending");
    if (task.version !== version) throw new Refusal(409, "Version mismatch");
    const acquiredTask = this.#claim(task, pid, ttl);
    return [200, { task: taskRecord(acquiredTask), promise: promiseRecord(promise), preload: this.#preload(promise) }];
  }

  #claim({ id, version }: Task, pid: string, ttl: number): Task {
    const timer = this.#now + ttl;
    return this.#putTask({ id, state: "acquired", version: version + 1, pid, ttl, resumes: new Set(), timer });
  }

  #suspend({ id, version, actions }: TaskSuspendReq["data"]): Answer {
    const ids = [...new Set(actions.map(({ data }) => data.awaited))];
    this.#timeOut([id, ...ids]);
    const task = this.#acquiredTask({ id, version });
    const promises = ids.map((promiseId) => this.#promiseAt(promiseId, 422, "Awaited promise not found"));
    if (promises.some(({ state }) => state !== "pending")) {
      this.#putTask({ ...task, resumes: new Set() });
      return [300, { preload: this.#preload(this.#promiseAt(id)) }];
    }
    for (const promise of promises) this.#putPromise({ ...promise, callbacks: new Set(promise.callbacks).add(id) });
    this.#putTask({ id, state: "suspended", version, resumes: new Set() });
    return [200, {}];
  }

  #fence({ id, version, action }: TaskFenceReq["data"], { corrId, version: protocol }: Operation["head"]): Answer {
    this.#timeOut([id, action.data.id]);
    this.#acquiredTask({ id, version });
    const [status, data] = this.answer(action);
    const head = { corrId, status, version: protocol };
    return [200, { action: { kind: action.kind, head, data }, preload: [] }];
  }

  #heartbeat({ pid, tasks }: TaskHeartbeatReq["data"]): Answer {
    for (const { id, version } of tasks) {
      const task = this.#state.task(id);
      if (task?.state !== "acquired" || task.version !== version || task.pid !== pid) continue;
      this.#putTask({ ...task, timer: this.#now + (task.ttl ?? RETRY_INTERVAL_MS) });
    }
    return [200, {}];
  }

  #halt({ id }: { id: string }): Answer {
    const { state, version, resumes } = this.#taskAt(id);
    if (state === "fulfilled") throw new Refusal(409, "Task is fulfilled");
    if (state !== "halted") this.#putTask({ id, state: "halted", version, resumes });
    return [200, {}];
  }

  #continue({ id }: { id: string }): Answer {
    const task = this.#taskAt(id);
    if (task.state !== "halted") throw new Refusal(409, "Task is not halted");
    this.#dispatch(task);
    return [200, {}];
  }

  /** Frees a task to be claimed, and dispatches it to its target. */
  #dispatch({ id, version, resumes }: Task, from = this.#now): void {
    const address = this.#state.promise(id)?.tags[TARGET_TAG];
    const timer = from + RETRY_INTERVAL_MS;
    this.#putTask({ id, state: "pending", version, resumes, timer, dispatchedTo: address });
    if (address !== undefined) this.changes.push({ kind: "execute", address, task: { id, version }, timer });
  }

  /** A promise that a task awaits has settled: dispatches a suspended task, and notes the promise for any other. */
  #resume(id: string, awaited: string): void {
    const task = this.#state.task(id);
    if (!task || task.state === "fulfilled") return;
    const next = { ...task, resumes: new Set(task.resumes).add(awaited) };
    if (task.state === "suspended") this.#dispatch(next);
    else this.#putTask(next);
  }

  /** The promise of a task has settled: fulfills the task and removes its callbacks. */
  #fulfill(id: string): void {
    const task = this.#state.task(id);
    if (!task || task.state === "fulfilled") return;
    this.#putTask({ id, state: "fulfilled", version: task.version, resumes: new Set() });
    for (const promise of this.#state.awaitedBy(id))
      this.#putPromise({ ...promise, callbacks: new Set([...promise.callbacks].filter((each) => each !== id)) });
  }

  /** The other promises of a promise's branch, for the worker that begins to execute it. */
  #preload({ id, tags }: StoredPromise) {
    const branch = tags[BRANCH_TAG];
    if (branch === undefined) return [];
    return this.#state.branch(branch).flatMap((each) => (each.id === id ? [] : [promiseRecord(each)]));
  }

  // Schedules

  #scheduleAt(id: string): Schedule {
    const schedule = this.#state.schedule(id);
    if (!schedule) throw new Refusal(404, "Schedule not found");
    return schedule;
  }

  #createSchedule(data: ScheduleCreateReq["data"]): Answer {
    const nextRunAt = nextRun(data.cron, this.#now);
    if (nextRunAt === undefined) throw new Refusal(400, "Invalid cron expression");
    const { id, cron, promiseId, promiseTimeout, promiseParam, promiseTags } = data;
    const fields = { id, cron, promiseId, promiseTimeout, promiseParam, promiseTags };
    const existing = this.#state.schedule(id);
    if (existing) return [200, { schedule: existing }];
    const length = promiseId.length + (promiseId.split("{{.id}}").length - 1) * id.length;
    if (length > MAX_SCHEDULED_ID_CHARACTERS)
      throw new Refusal(400, `The ids of a schedule's promises may have ${MAX_SCHEDULED_ID_CHARACTERS} characters`);
    if (utf8.encode(JSON.stringify(fields)).length > MAX_SCHEDULE_BYTES)
      throw new Refusal(413, `A schedule may have ${MAX_SCHEDULE_BYTES} bytes`);
    return [200, { schedule: this.#putSchedule({ ...fields, createdAt: this.#now, nextRunAt }) }];
  }

  skip(id: string): void {
    const schedule = this.#scheduleAt(id);
    const nextRunAt = nextRun(schedule.cron, this.#now) ?? this.#now + RETRY_INTERVAL_MS;
    this.#putSchedule({ ...schedule, nextRunAt });
  }

  #fire(schedule: Schedule): void {
    const { nextRunAt: firedAt, promiseTimeout, promiseParam } = schedule;
    const id = schedule.promiseId.replaceAll("{{.id}}", schedule.id).replaceAll("{{.timestamp}}", String(firedAt));
    const lineage = Object.fromEntries(
      ["origin", "branch", "parent", "prefix"].map((name) => [`resonate:${name}`, id]),
    );
    const tags = { ...schedule.promiseTags, "resonate:schedule": schedule.id, ...lineage };
    this.#create({ id, timeoutAt: firedAt + promiseTimeout, param: promiseParam, tags }, firedAt);
    const nextRunAt = nextRun(schedule.cron, firedAt) ?? firedAt + RETRY_INTERVAL_MS;
    this.#putSchedule({ ...schedule, lastRunAt: firedAt, nextRunAt });
  }

  // Writes

  #putPromise(promise: StoredPromise): StoredPromise {
    this.#state.putPromise(promise);
    this.changes.push({ kind: "promise", promise });
    return promise;
  }

  #putTask(task: Task): Task {
    this.#state.putTask(task);
    this.changes.push({ kind: "task", task });
    return task;
  }

  #putSchedule(schedule: Schedule): Schedule {
    this.#state.putSchedule(schedule);
    this.changes.push({ kind: "schedule", id: schedule.id });
    return schedule;
  }
}

/** The state of a promise that has passed its deadline. */
function timedOutState(tags: Record<string, string> | undefined): SettledState {
  return tags?.["resonate:timer"] === "true" ? "resolved" : "rejected_timedout";
}

const utf8 = new TextEncoder();

/** `H`, for which the library takes a random value at each reading. Names of days have the letter too. */
const RANDOM_PATTERN = /(?<![a-z])h(?![a-z])/i;

function nextRun(cron: string, after: number): number | undefined {
  if (RANDOM_PATTERN.test(cron)) return undefined;
  try {
    return CronExpressionParser.parse(cron, { currentDate: new Date(after), tz: "UTC" })
      .next()
      .getTime();
  } catch {
    return undefined;
  }
}
