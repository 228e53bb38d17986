import { expect, test } from "vitest";
import type { ResonateClient } from "../../core/resonate/connection/client.ts";
import type { PromiseRecord } from "../../core/resonate/connection/protocol.ts";
import { PromiseWatcher } from "./promise-watcher.ts";

const record = (id: string, state = "pending", data = "") => ({ id, state, value: { data } }) as PromiseRecord;

/** A watcher in front of a server that knows every promise, and the requests that it makes. */
function scene({ maxSize = 100_000, answer = async () => {}, state = (): string => "pending" } = {}) {
  const requests: string[] = [];
  const send = async (kind: string, data: { id?: string; awaited?: string }) => {
    const id = data.awaited ?? data.id ?? "";
    requests.push(`${kind} ${id}`);
    await answer();
    return { status: 200, data: { promise: record(id, state()) } };
  };
  const watcher = new PromiseWatcher({ send } as unknown as ResonateClient, 1_000, maxSize);
  watcher.noteConnected("poll://uni@group/1");
  const told: string[] = [];
  const listener = (id: string) => (promise?: PromiseRecord) => told.push(`${id} ${promise?.state ?? "unsure"}`);
  return { watcher, requests, told, listener };
}

test("a settlement is told with the promise, once", async () => {
  const { watcher, requests, told, listener } = scene();
  await watcher.watch("a", false, listener("a"));
  watcher.noteSettled(record("a", "resolved"));
  watcher.noteSettled(record("a", "resolved"));
  expect(told).toEqual(["a resolved"]);
  expect((await watcher.watch("a", false, listener("a")))?.state).toBe("resolved");
  expect(requests).toEqual(["promise.register_listener a"]);
});

test("a job that watches a promise in several executions is told of its settlement once, in the last one", async () => {
  const { watcher, told, listener } = scene();
  const watch = (job: string, execution: number) =>
    watcher.watch("a", false, listener(`${job} ${execution}`), undefined, { by: job, execution });
  await watch("tea", 1);
  await watch("tea", 2);
  await watch("cake", 1);
  watcher.noteConnected("poll://uni@group/1.1");
  await watch("tea", 3);
  // The second execution may still register what it awaited.
  await watch("tea", 2);
  watcher.noteSettled(record("a", "resolved"));
  expect(told).toEqual(["tea 2 unsure", "cake 1 unsure", "tea 3 resolved", "cake 1 resolved"]);
});

test("a listener that has left is told nothing", async () => {
  const { watcher, told, listener } = scene();
  const [stays, leaves] = [listener("stays"), listener("leaves")];
  for (const each of [stays, leaves]) await watcher.watch("a", false, each);
  watcher.leave("a", leaves);
  watcher.noteSettled(record("a", "resolved"));
  expect(told).toEqual(["stays resolved"]);
});

test("the listeners of a lost connection are told that they may have missed something", async () => {
  const { watcher, requests, told, listener } = scene();
  for (const id of ["a", "b"]) await watcher.watch(id, false, listener(id));
  watcher.noteSettled(record("b", "resolved"));
  watcher.noteDisconnected();
  expect(told).toEqual(["b resolved"]);
  watcher.noteConnected("poll://uni@group/1.1");
  expect(told).toEqual(["b resolved", "a unsure"]);
  await watcher.watch("a", false, listener("a"));
  expect(requests.filter((request) => request === "promise.register_listener a")).toHaveLength(2);
});

test("all listeners are told of a settlement that was missed, once one of them reads the promise again", async () => {
  let state = "pending";
  const { watcher, told, listener } = scene({ state: () => state });
  await watcher.watch("a", false, listener("first"));
  watcher.noteConnected("poll://uni@group/1.1");
  state = "resolved";
  expect((await watcher.watch("a", false, listener("second")))?.state).toBe("resolved");
  expect(told).toEqual(["first unsure", "first resolved"]);
});

test("a settlement is not taken from memory for a promise that may have been created after it", async () => {
  const { watcher, requests, told, listener } = scene();
  const old = { ...record("a", "resolved"), createdAt: 1, settledAt: 5 };
  watcher.noteSettled(old);
  expect(await watcher.watch("a", false, listener("a"), 5)).toBe(old);
  expect((await watcher.watch("a", false, listener("a"), 6))?.state).toBe("pending");
  expect(requests).toEqual(["promise.register_listener a"]);
  watcher.noteSettled({ ...record("b", "resolved"), createdAt: 1, settledAt: 5 });
  watcher.noteCreated({ id: "b", createdAt: 6 });
  expect((await watcher.watch("b", false, listener("b")))?.state).toBe("pending");
  expect(told).toEqual([]);
});

test("a listener is told so as well if the connection is replaced while the listener is registered", async () => {
  const answered = Promise.withResolvers<void>();
  const { watcher, told, listener } = scene({ answer: () => answered.promise });
  const watched = watcher.watch("a", false, listener("a"));
  watcher.noteConnected("poll://uni@group/1.1");
  answered.resolve();
  await watched;
  expect(told).toEqual(["a unsure"]);
});

test("a listener whose promise is no longer remembered is told so after a pause", async () => {
  const { watcher, told, listener } = scene({ maxSize: 2_000 });
  await watcher.watch("a", false, listener("a"));
  for (const id of ["b", "c"]) watcher.noteSettled(record(id, "resolved", "x".repeat(400)));
  expect(told).toEqual([]);
  await expect.poll(() => told, { timeout: 5_000 }).toEqual(["a unsure"]);
});
