/** A durable function with progress and questions is replayed after each answer and crash, invisibly to its clients. */

import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import type { JournalEntry } from "../../core/engine/journal.ts";
import type { AnswerEntry, FeedEntry } from "../../core/jobs/feed/progress-feed.ts";
import { endpointOf } from "../../core/resonate/connection/endpoint.ts";
import { feedEntryId, journalEntryId } from "../../core/resonate/ids.ts";
import { callerJobs } from "../../core/tools/caller-jobs.ts";
import { ALIVE } from "../../features/crash-loop/crash-loop.ts";
import { until } from "../../testing/stack/program.ts";
import { ownGroup, startWorker, type WorkerProcess } from "../../testing/stack/worker-process.ts";
import { startGate } from "../support/gate.ts";
import { jobStore } from "../support/job-store.ts";
import { type Resonate, startResonate } from "../support/resonate.ts";
import { interview } from "./fixture/interview.ts";

/** The time within which a Resonate server repeats a lost dispatch (after half a minute), in milliseconds. */
const DISPATCHED_AGAIN = 40_000;

vi.setConfig({ testTimeout: 6 * DISPATCHED_AGAIN });

let resonate: Resonate;
beforeAll(async () => {
  resonate = await startResonate();
});
afterAll(() => resonate?.[Symbol.asyncDispose]());

const said = (text: string): AnswerEntry => ({ action: "accept", content: { text } });

/**
 * The job, a worker that can be killed, and a gate between the worker and the Resonate server. With `isListenedTo`, an edge
 * listens to the entries of the progress feed, which are then written by two requests.
 */
async function scene(name: string, { isListenedTo = false } = {}) {
  const gate = await startGate(resonate.url);
  const { namespace, env } = ownGroup();
  const store = jobStore(endpointOf({ RESONATE_URL: resonate.url, ...resonate.env, ...env }), [interview]);
  const launch = () =>
    startWorker(
      { ...resonate.env, ...env, RESONATE_URL: gate.url, LEASE_SECONDS: "1" },
      { script: "test/tasks/fixture/interview-worker.ts" },
    );
  let worker: WorkerProcess | undefined = await launch();
  const job = await interview.name({ name });
  const newest = async () => {
    const promise = await store.get(job);
    return promise && (await store.feeds.newest(promise)).entry;
  };
  return {
    gate,
    job,
    id: namespace + job,
    async begin() {
      const now = Date.now();
      const promise = { id: namespace + job, timeoutAt: interview.deadline({ name }, now) + interview.cleanupTime };
      const channel = { address: "poll://uni@edge/nobody", closed: Promise.resolve(undefined) };
      for (let n = 1; isListenedTo && n <= 20; n++) await store.feeds.listenToEntry(promise, n, channel);
      await store.create(interview, job, { name }, now);
    },
    /** Waits until exactly these questions are open, and returns the key and the promise of each. */
    asks: (...messages: string[]) =>
      until(
        `to be asked ${messages}`,
        async () => {
          const asked = Object.entries((await newest())?.questions ?? {});
          if (asked.map(([, { question }]) => question.message).join() !== messages.join()) return undefined;
          return asked.map(([key, { promiseId }]) => ({ key, promiseId }));
        },
        3 * DISPATCHED_AGAIN,
      ),
    jobs: callerJobs(store, Date.now(), new AbortController().signal),
    answer: (promiseId: string, text: string) => store.feeds.answer(promiseId, said(text)),
    settled: () => resonate.settled(namespace + job, DISPATCHED_AGAIN),
    async entry(n: number): Promise<FeedEntry | undefined> {
      const promise = await resonate.get(feedEntryId(`${namespace}${job}`, n));
      return promise?.state === "resolved" ? (promise.value.data ?? promise.param.data) : undefined;
    },
    acquired: () => gate.calls.filter(({ kind }) => kind === "task.acquire").length,
    record: (n: number) => resonate.get(journalEntryId(`${namespace}${job}`, n)),
    async kill() {
      await worker?.[Symbol.asyncDispose]();
      worker = undefined;
    },
    async start() {
      worker = await launch();
    },
    async [Symbol.asyncDispose]() {
      await worker?.[Symbol.asyncDispose]();
      await gate[Symbol.asyncDispose]();
    },
  };
}

type Scene = Awaited<ReturnType<typeof scene>>;

/** Answers the second question, then the first, then the third, and runs `between` after each answer. */
async function interviewed(the: Scene, between: () => Promise<unknown> = async () => {}) {
  const [first, second] = await the.asks("first?", "second?");
  await the.answer(second?.promiseId ?? "", "two");
  await between();
  const [stillFirst] = await the.asks("first?");
  expect(stillFirst).toEqual(first);
  await the.answer(first?.promiseId ?? "", "one");
  await between();
  const [third] = await the.asks("third?");
  await the.answer(third?.promiseId ?? "", "three");
  await between();
  const questions = [first, second, third];
  expect(questions.map((question) => question?.key)).toEqual(["q1", "q2", "q3"]);
  expect(new Set(questions.map((question) => question?.promiseId)).size).toBe(3);
  expect((await the.settled()).value).toMatchObject({ data: [said("two"), said("one"), said("three")] });
}

/** The entries of the progress feed, which has no gaps: the message of each, and the keys of its questions. */
async function journal(the: Scene): Promise<string[]> {
  const entries = [];
  for (let n = 1; ; n++) {
    const entry = await the.entry(n);
    if (!entry) break;
    entries.push(`${entry.message}: ${Object.keys(entry.questions).join()}`);
  }
  for (const beyond of [1, 2, 3]) expect(await the.entry(entries.length + beyond)).toBeUndefined();
  return entries;
}

/** The entries that must be written. Entries in between may be left out where many come at once. */
const TOLD = ["begun: q1,q2", "second answered: q1", "both answered: q3"];
const STATES = ["begun: ", "begun: q1", "begun: q1,q2", "second answered: q1", "both answered: ", "both answered: q3"];

/** Expects that the feed has every required entry in order, and no false one. */
async function expectJournal(the: Scene): Promise<string[]> {
  const entries = await journal(the);
  const states = entries.map((entry) => STATES.indexOf(entry));
  expect(states).toEqual(states.toSorted((a, b) => a - b));
  expect(states).not.toContain(-1);
  expect(entries.filter((entry, i) => TOLD.includes(entry) && entry !== entries[i - 1])).toEqual(TOLD);
  return entries;
}

/** Expects one journal entry for each question, and none made by a replay. Signs of executions without an entry do not count. */
async function expectRecords(the: Scene): Promise<void> {
  const asked: string[] = [];
  for (let n = 1; ; n++) {
    const entry = (await the.record(n))?.param.data as JournalEntry | undefined;
    if (!entry) break;
    if (entry.kind !== ALIVE.kind || entry.op !== ALIVE.op) asked.push(`${entry.kind} ${entry.op}`);
  }
  expect(asked).toEqual(["ask q1", "ask q2", "ask q3"]);
}

describe.concurrent("an interview", () => {
  test("is the same however often its function runs", async () => {
    await using the = await scene("undisturbed");
    await the.begin();
    await interviewed(the);
    const entries = await expectJournal(the);
    expect(entries).toEqual([...new Set(entries)]); // no entry is written twice
    await expectRecords(the);
  });

  test("whose questions get several answers takes the first, and the senders of the others learn that it is closed", async () => {
    await using the = await scene("several");
    await the.begin();
    await the.asks("first?", "second?");
    const answer = (key: string, text: string) => the.jobs.answer(the.job, key, said(text));
    expect(await answer("q2", "two")).toBe("answered");
    expect([await answer("q2", "another"), await answer("q2", "two")]).toEqual(["closed", "closed"]);
    const told = await Promise.all(["one", "one", "one"].map((text) => answer("q1", text)));
    expect(told.toSorted()).toEqual(["answered", "closed", "closed"]);
    await the.asks("third?");
    expect(await answer("q3", "three")).toBe("answered");
    expect((await the.settled()).value).toMatchObject({ data: [said("two"), said("one"), said("three")] });
    expect(await answer("q3", "four")).toBe("closed");
  });

  test("whose worker is killed after each answer", async () => {
    await using the = await scene("killed");
    await the.begin();
    await interviewed(the, async () => {
      await the.kill();
      await the.start();
    });
    await expectJournal(the);
    await expectRecords(the);
  });

  // A question's promise is created before the feed entry about it. The entry is one request, or two if it is listened to.
  test.each([
    ["before it is written: the question's promise exists, and no entry tells of it", "promise.create", false],
    ["after the worker has found that it is listened to and before it is written", "promise.settle", true],
  ])("whose worker is killed at every entry, %s", async (_when, call, isListenedTo) => {
    await using the = await scene(`at ${call}`, { isListenedTo });
    await the.begin();
    let held = the.gate.hold(call, { of: the.id });
    let over = false;
    const killing = (async () => {
      for (let kills = 0; ; kills++) {
        await Promise.race([held, until("the end", () => over, 6 * DISPATCHED_AGAIN)]);
        if (over) return kills;
        await the.kill();
        // The next worker writes that entry, and the entry after it is held.
        held = the.gate.hold(call, { of: the.id, first: 1 });
        await the.start();
      }
    })();
    await interviewed(the);
    over = true;
    expect(await killing).toBeGreaterThanOrEqual(3);
    await expectJournal(the);
    await expectRecords(the);
  });

  test.each([
    ["promise.create", false],
    ["promise.settle", true],
  ])("writes its feed even if %s, which writes the entries, fails again and again", async (call, isListenedTo) => {
    await using the = await scene(`failing ${call}`, { isListenedTo });
    await the.begin();
    let over = false;
    const failing = (async () => {
      while (!over) {
        await Promise.race([the.gate.loseAnswer(call), until("the end", () => over, 6 * DISPATCHED_AGAIN)]);
      }
    })();
    await until("several calls to fail", () => the.gate.calls.filter(({ kind }) => kind === call).length > 6);
    over = true;
    await interviewed(the);
    await failing;
    await expectJournal(the);
    await expectRecords(the);
  });

  test("does not go to sleep with an unseen question while its entries cannot be written", async () => {
    await using the = await scene("unheard");
    const held = the.gate.hold("promise.create");
    await the.begin();
    await held;
    // This takes longer than a request is repeated, and longer than the lease.
    await until("the job to be claimed again", () => the.acquired() > 2, 2 * DISPATCHED_AGAIN);
    the.gate.release("promise.create");
    await interviewed(the);
    await expectRecords(the);
  });
});
