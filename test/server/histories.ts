/** Random histories of requests, passing time and restarts for a Resonate server, for fast-check. */
import fc from "fast-check";
import type { MemoryState } from "../../server/engine/memory-state.ts";
import type { Operation } from "../../server/engine/records.ts";

/** Creates a request for the time `now` and the server's state `memory`. */
export type RequestMaker = (now: number, memory: MemoryState) => Operation;
/** An event that comes after `delay` milliseconds. */
export type Step = { delay: number } & ({ request: RequestMaker } | { tick: true } | { restart: true });

const head = { corrId: "1", version: "2026-04-01" };
const ROOTS = ["a", "b", "c"];
const children = (root: string) => [0, 1, 2, 3].map((n) => `${root}:${n}`);
const CHILDREN = ROOTS.flatMap(children);

const originOf = (id: string) => id.split(":")[0] as string;
const root = fc.constantFrom(...ROOTS);
const anyId = fc.constantFrom(...ROOTS, ...CHILDREN, "missing");
/** The difference between a version and the right one, mostly 0. */
const versionOffset = fc.oneof({ weight: 5, arbitrary: fc.constant(0) }, fc.constantFrom(-1, 1));
const pid = fc.constantFrom("p1", "p2");
const ttl = fc.integer({ min: 1, max: 40_000 });
const state = fc.constantFrom("resolved" as const, "rejected" as const, "rejected_canceled" as const);
const value = fc.constantFrom({}, { data: "eA==" }, { headers: { h: "ü" }, data: "" });
/** Milliseconds from now. */
const ahead = fc.oneof(
  { weight: 4, arbitrary: fc.integer({ min: 1, max: 200_000 }) },
  fc.integer({ min: -10, max: 0 }),
);

const version = (memory: MemoryState, id: string, offset = 0) =>
  Math.max(0, (memory.tasks.get(id)?.version ?? 0) + offset);

function createRequest(
  id: string,
  timeoutAt: number,
  { target = ROOTS.includes(id), timer = false, delay = Number.NaN } = {},
) {
  const tags: Record<string, string> = { "resonate:branch": originOf(id), "resonate:scope": "global" };
  if (target) tags["resonate:target"] = `poll://any@${id.slice(0, 1)}`;
  if (timer) tags["resonate:timer"] = "true";
  if (!Number.isNaN(delay)) tags["resonate:delay"] = String(delay);
  return { kind: "promise.create" as const, head, data: { id, timeoutAt, param: {}, tags } };
}

const create = fc.record({ id: anyId, ahead, target: fc.boolean(), timer: fc.boolean(), delay: fc.option(ahead) }).map(
  ({ id, ahead, target, timer, delay }) =>
    (now: number) =>
      createRequest(id, now + ahead, {
        target: target || ROOTS.includes(id),
        timer,
        ...(delay !== null && { delay: now + delay }),
      }),
);
const settle = fc
  .record({ id: anyId, state, value })
  .map((data) => () => ({ kind: "promise.settle" as const, head, data }));

function suspend(id: string, version: number, awaited: string[]): Operation {
  const actions = awaited.map((child) => ({
    kind: "promise.register_callback" as const,
    head,
    data: { awaited: child, awaiter: id },
  }));
  return { kind: "task.suspend", head, data: { id, version, actions } };
}

/** The request that a worker would make next for a task, so that histories make progress. */
const work: fc.Arbitrary<RequestMaker> = fc
  .record({ id: root, pid, ttl, choice: fc.nat(9), pick: fc.subarray([0, 1, 2, 3], { minLength: 1 }), state, value })
  .map(({ id, pid, ttl, choice, pick, state, value }) => (now, memory) => {
    const task = memory.tasks.get(id);
    const some = pick.map((n) => `${id}:${n}`);
    const [child = id] = some;
    const at = version(memory, id);
    switch (task?.state) {
      case undefined:
        return createRequest(id, now + 300_000);
      case "pending":
        return { kind: "task.acquire", head, data: { id, version: at, pid, ttl } };
      case "acquired": {
        const missing = some.find((child) => !memory.promises.has(child));
        const action = missing
          ? createRequest(missing, now + 100_000, { target: choice % 2 === 0, timer: choice % 3 === 0 })
          : { kind: "promise.settle" as const, head, data: { id: child, state, value } };
        if (missing || choice < 2) return { kind: "task.fence", head, data: { id, version: at, action } };
        if (choice < 7) return suspend(id, at, some);
        if (choice === 7) return { kind: "task.release", head, data: { id, version: at } };
        return {
          kind: "task.fulfill",
          head,
          data: { id, version: at, action: { kind: "promise.settle", head, data: { id, state, value } } },
        };
      }
      case "suspended":
        return { kind: "promise.settle", head, data: { id: choice === 0 ? id : child, state, value } };
      case "halted":
        return { kind: "task.continue", head, data: { id } };
      default:
        return { kind: "task.get", head, data: { id } };
    }
  });

/** Any operation on anything. Most of them are refused. */
const anything: fc.Arbitrary<RequestMaker> = fc.oneof(
  create,
  settle,
  anyId.map((id) => () => ({ kind: "promise.get" as const, head, data: { id } })),
  anyId.map((id) => () => ({ kind: "task.get" as const, head, data: { id } })),
  fc
    .record({ awaited: anyId, awaiter: root })
    .map((data) => () => ({ kind: "promise.register_callback" as const, head, data })),
  fc
    .record({ awaited: anyId, address: fc.constantFrom("poll://uni@e/1", "poll://uni@e/2") })
    .map((data) => () => ({ kind: "promise.register_listener" as const, head, data })),
  fc.record({ id: root, pid, ttl, ahead }).map(({ id, pid, ttl, ahead }) => (now: number) => ({
    kind: "task.create" as const,
    head,
    data: { pid, ttl, action: createRequest(id, now + ahead) },
  })),
  fc
    .record({ id: root, offset: versionOffset, pid, ttl })
    .map(({ id, offset, pid, ttl }) => (_: number, memory: MemoryState) => ({
      kind: "task.acquire" as const,
      head,
      data: { id, version: version(memory, id, offset), pid, ttl },
    })),
  fc
    .record({
      id: root,
      offset: versionOffset,
      awaited: fc.subarray([...CHILDREN, "missing"], { minLength: 1, maxLength: 4 }),
    })
    .map(
      ({ id, offset, awaited }) =>
        (_: number, memory: MemoryState) =>
          suspend(id, version(memory, id, offset), awaited),
    ),
  fc
    .record({ id: root, offset: versionOffset, action: fc.oneof(create, settle) })
    .map(({ id, offset, action }) => (now: number, memory: MemoryState) => ({
      kind: "task.fence" as const,
      head,
      data: { id, version: version(memory, id, offset), action: action(now) },
    })),
  fc
    .record({ pid, ids: fc.subarray(ROOTS), offset: versionOffset })
    .map(({ pid, ids, offset }) => (_: number, memory: MemoryState) => ({
      kind: "task.heartbeat" as const,
      head,
      data: { pid, tasks: ids.map((id) => ({ id, version: version(memory, id, offset) })) },
    })),
  root.map((id) => () => ({ kind: "task.halt" as const, head, data: { id } })),
  fc
    .record({
      id: fc.constantFrom("s1", "s2"),
      kind: fc.constantFrom("schedule.get" as const, "schedule.delete" as const),
    })
    .map(({ id, kind }) => () => ({ kind, head, data: { id } })),
  fc.constantFrom("s1", "s2").map((id) => () => ({
    kind: "schedule.create" as const,
    head,
    data: {
      id,
      cron: "*/30 * * * * *",
      promiseId: "{{.id}}-{{.timestamp}}",
      promiseTimeout: 5_000,
      promiseParam: {},
      promiseTags: { "resonate:target": "poll://any@s" },
    },
  })),
);

/** Any request that a server may get from a client. */
export const anyRequest: fc.Arbitrary<RequestMaker> = fc.oneof(work, anything);

/** A time span longer than any history. */
const LONG_SPAN_MS = 1e12;

/**
 * The part of a request that 0.10 accepts from any client: it concerns promises of one job, and its promises have a target if
 * they are to time out (`test/contract/releases.test.ts` tests the refusals). Undefined when no part is left.
 */
export function acceptedBy010<R extends { kind: string; data: object }>(request: R, now: number): R | undefined {
  const { id = "", awaited = "", awaiter = "", tasks, actions, ...data } = request.data as Parts;
  if (originOf(awaited) !== originOf(awaiter)) return;
  const ownActions = actions?.filter((action) => originOf(action.data.awaited) === originOf(id));
  if (tasks?.length === 0 || ownActions?.length === 0) return;
  const parts = { ...data, id, awaited, awaiter, tasks: tasks?.slice(0, 1), actions: ownActions };
  const accepted = JSON.parse(JSON.stringify(parts), (_, value) => {
    const isOpen = value?.timeoutAt > now && value.tags?.["resonate:target"] === undefined;
    return isOpen ? { ...value, timeoutAt: now + LONG_SPAN_MS } : value === "" ? undefined : value;
  });
  return { ...request, data: accepted };
}

/** The parts of a request's data that decide whether 0.10 accepts it. */
interface Parts {
  id?: string;
  awaited?: string;
  awaiter?: string;
  tasks?: object[];
  actions?: { data: { awaited: string } }[];
}

const delay = fc.oneof(
  { weight: 9, arbitrary: fc.integer({ min: 0, max: 500 }) },
  fc.integer({ min: 10_000, max: 70_000 }),
);

export const history: fc.Arbitrary<Step[]> = fc.array(
  fc.oneof(
    { weight: 12, arbitrary: fc.record({ delay, request: work }) },
    { weight: 6, arbitrary: fc.record({ delay, request: anything }) },
    { weight: 2, arbitrary: fc.record({ delay, tick: fc.constant(true as const) }) },
    { weight: 1, arbitrary: fc.record({ delay, restart: fc.constant(true as const) }) },
  ),
  { minLength: 40, maxLength: 120, size: "max" },
);

/** A step of a history for servers that take the time from requests: without restarts, and without a single server's features. */
export type TimedStep = { delay: number } & ({ request: TimedRequestMaker } | { tick: true });
type TimedRequestMaker = (now: number, memory: MemoryState) => { kind: string; data: object };

const search: fc.Arbitrary<TimedRequestMaker> = fc.oneof(
  fc
    .record({
      state: fc.constantFrom(undefined, "pending" as const, "resolved" as const),
      tags: fc.constantFrom(undefined, { "resonate:branch": "a" }),
      limit: fc.constantFrom(undefined, 1, 3),
      cursor: fc.constantFrom(undefined, "a:1"),
    })
    .map((data) => () => ({ kind: "promise.search", data })),
  fc
    .record({
      state: fc.constantFrom(undefined, "pending" as const, "fulfilled" as const),
      limit: fc.constantFrom(undefined, 1),
    })
    .map((data) => () => ({ kind: "task.search", data })),
  fc.constant(() => ({ kind: "schedule.search", data: {} })),
  root.map((id) => () => ({ kind: "task.continue", data: { id } })),
);

export const timedHistory: fc.Arbitrary<TimedStep[]> = fc
  .array(
    fc.oneof(
      { weight: 10, arbitrary: fc.tuple(fc.record({ delay, request: work as fc.Arbitrary<TimedRequestMaker> })) },
      { weight: 8, arbitrary: fc.tuple(fc.record({ delay, request: anything as fc.Arbitrary<TimedRequestMaker> })) },
      { weight: 2, arbitrary: fc.tuple(fc.record({ delay, tick: fc.constant(true as const) })) },
      // A standalone server does not handle due time-outs before a search, so a tick comes first.
      {
        weight: 1,
        arbitrary: fc.tuple(
          fc.record({ delay, tick: fc.constant(true as const) }),
          fc.record({ delay: fc.constant(0), request: search }),
        ),
      },
    ),
    { minLength: 90, maxLength: 90 },
  )
  .map((steps) => steps.flat());
