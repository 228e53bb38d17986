/** A deployment with one caller, in this process: its object, a Resonate server, and receivers of its web hooks. */
import { afterEach, beforeEach, vi } from "vitest";
import { callerOf } from "../../core/author/caller.ts";
import { Names, reservationFor, type StartedJob, tagOf } from "../../core/jobs/index.ts";
import { encodeValue, RESERVATION_TAG, resultOf } from "../../core/resonate/index.ts";
import { Simulation } from "../../testing/simulation/simulation.ts";
import { openCallerObject } from "./caller-object.ts";
import { createStorage } from "./object-storage.ts";

export const { key: KEY } = await callerOf("ada");
export const MINUTE = 60_000;
const CALLER = "durable-mcp:caller";

/** The beginning of an hour. */
export const BEGAN = 480_000 * 60 * MINUTE;

/** Has the tests of a file begin at {@link BEGAN}, by a clock that they move. */
export function moveClock(): void {
  beforeEach(() => void vi.useFakeTimers({ now: BEGAN, toFake: ["Date"] }));
  afterEach(() => {
    vi.unstubAllGlobals();
    vi.useRealTimers();
  });
}

/** A deployment with one caller: its object, and a server whose answers are counted. */
export function deployCaller(most: number, bindings = {}) {
  const sim = new Simulation({ now: () => Date.now() });
  const state = { requests: 0, isAway: false, isSearched: false };
  vi.stubGlobal("fetch", async (_url: string, init: RequestInit) => {
    const { kind, data } = JSON.parse(String(init.body));
    // Not counted, as an object asks for this addition only once.
    if (kind === "promise.read") return Response.json({ kind, head: { status: 400 }, data: "Unknown operation" });
    state.requests += 1;
    if (state.isAway) return new Response("", { status: 503 });
    if (kind === "promise.search") {
      if (!state.isSearched) return Response.json({ kind, head: { status: 403 }, data: "not allowed" });
      const promises = sim.promises().map((id) => sim.get(id));
      const found = promises.filter((one) => one?.tags[CALLER] === data.tags[CALLER]);
      return Response.json({ kind, head: { status: 200 }, data: { promises: found } });
    }
    const { status, data: answer } = await sim.send(kind, data);
    return Response.json({ kind, head: { status }, data: answer });
  });
  const env = { RESONATE_URL: "http://resonate", AUTH_MODE: "none", ...bindings };
  let storage = createStorage();
  let object = openCallerObject(storage, env);
  const idOf = (name: string) => KEY + name;
  const create = async (name: string, tag: string, minutes = 10) => {
    const tags = {
      [RESERVATION_TAG]: tag,
      ...new Names([], "", KEY).ownerTags("timer"),
      "resonate:target": "poll://any@workers",
    };
    const data = {
      id: idOf(name),
      timeoutAt: Date.now() + minutes * MINUTE,
      param: encodeValue({ func: "timer" }),
      tags,
    };
    await sim.send("promise.create", data);
  };
  const isPending = (name: string) => sim.get(idOf(name))?.state === "pending";
  return {
    sim,
    state,
    create,
    idOf,
    isPending,
    get object() {
      return object;
    },
    restart(isLost = false) {
      if (isLost) storage = createStorage();
      object = openCallerObject(storage, env);
    },
    end: (name: string) =>
      sim.send("promise.settle", { id: idOf(name), state: "resolved", value: encodeValue("done") }),
    /** A start by an edge, which may die before it creates the job. */
    async start(name: string, count = 1, dies = false) {
      const reservation = reservationFor({ duration: 10 * MINUTE, now: Date.now(), count });
      const times = { startedAt: Date.now(), settledAt: null, due: Date.now() + 10 * MINUTE };
      const job: StartedJob = {
        id: idOf(name),
        kind: "timer",
        state: "pending",
        ...times,
        ...reservation,
        bytes: 0,
        labels: [],
      };
      const { answer } = await object.reserve(KEY, job, { jobs: most, bytes: 0 });
      const reserved = resultOf(answer);
      if (reserved !== "full" && !dies) await create(name, tagOf(reservation));
      return reserved;
    },
    async list() {
      return (await object.list(KEY, { limit: 1_000 })).map(({ id }) => id.slice(KEY.length));
    },
  };
}

/** The object of a caller who has subscribed, over storage that outlasts it. `receive` answers as its receiver. */
export async function subscribed(receive: (id: string, url: string) => Response | Promise<Response>, bindings = {}) {
  const TOKEN = { name: "ada", sha256: "0".repeat(64) };
  const env = {
    AUTH_MODE: "bearer",
    BEARER_TOKENS: JSON.stringify([TOKEN]),
    RESONATE_URL: "https://resonate.example.com",
    ...bindings,
  };
  const deployment = deployCaller(0);
  const toServer = fetch;
  vi.stubGlobal("fetch", async (url: string | URL, init: RequestInit) => {
    if (String(url).startsWith(env.RESONATE_URL)) return toServer(env.RESONATE_URL, init);
    const { type, challenge } = JSON.parse(String(init.body));
    return type === "verification"
      ? Response.json({ challenge })
      : receive(new Headers(init.headers).get("webhook-id") ?? "", String(url));
  });
  const alarm = { at: 0 };
  const storage = { ...createStorage(), setAlarm: async (at: number) => void Object.assign(alarm, { at }) };
  const awake = () => openCallerObject(storage, env);
  const object = awake();
  const request = { name: "job.ended", filter: {}, url: "https://receiver.example.com/", cursor: null };
  const more = { secret: `whsec_${btoa("s".repeat(32))}`, ttlMs: 7 * 24 * 60 * MINUTE };
  const caller = { id: "ada", key: KEY, label: "ada" };
  // The keys of callers are hashed once. Work in the background must not wait for that.
  await object.refusalOf(KEY);
  await object.subscribe(caller, { ...request, ...more });
  /** Starts a job that is expected to end after `minutes`, and times out after `most`. */
  const start = async (name: string, minutes: number, most = minutes) => {
    const times = { startedAt: Date.now(), settledAt: null, due: Date.now() + minutes * MINUTE };
    const job = { id: deployment.idOf(name), kind: "timer", state: "pending" as const, ...times };
    const none = { period: "", count: 0, bytes: 0, labels: [] };
    await awake().reserve(KEY, { ...job, ...none }, { jobs: 0, bytes: 0 });
    await deployment.create(name, "", most);
  };
  /** Lets the time pass until `until`, and runs each alarm in an object that has just woken up. Returns how many there were. */
  const pass = async (until: number) => {
    let alarms = 0;
    for (; alarm.at < until && alarms < 1_000; alarms++) {
      vi.setSystemTime(Math.max(Date.now() + 1, alarm.at));
      await awake().alarm();
    }
    vi.setSystemTime(until);
    return alarms;
  };
  return { ...deployment, env, storage, object, awake, alarm, start, pass, caller, request: { ...request, ...more } };
}

/** A receiver that notes when it got each event. */
export function noting() {
  const received = new Map<string, number>();
  const receive = (id: string) => {
    received.set(id.replace("ended_timer_", ""), Date.now());
    return new Response(null, { status: 204 });
  };
  return { received, receive };
}
