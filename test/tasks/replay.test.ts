/** A durable function that tells and asks runs again from its start after each answer and crash, and nobody notices. */
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import type { Answer } from "../../functions/jobs/index.ts";
import { RemoteStore } from "../../functions/resonate/store.ts";
import { startGate } from "../support/gate.ts";
import { until } from "../support/process.ts";
import { type Resonate, startResonate } from "../support/resonate.ts";
import { ownGroup, startWorker, type WorkerProcess } from "../support/worker.ts";
import { interview } from "./interview.ts";

/** A Resonate server offers a task that no worker was there to take again after half a minute. In milliseconds. */
const OFFERED_AGAIN = 40_000;

vi.setConfig({ testTimeout: 6 * OFFERED_AGAIN });

let resonate: Resonate;
beforeAll(async () => {
  resonate = await startResonate();
});
afterAll(() => resonate?.[Symbol.asyncDispose]());

const said = (text: string): Answer => ({ action: "accept", content: { text } });

/** The job, a worker that can be killed, and what stands between the worker and the Resonate server. */
async function scene(name: string) {
  const gate = await startGate(resonate.url);
  const { namespace, env } = ownGroup();
  const store = new RemoteStore({ ...resonate.env, ...env } as never, [interview]);
  const launch = () =>
    startWorker(
      { ...resonate.env, ...env, RESONATE_URL: gate.url, LEASE_SECONDS: "1" },
      { script: "test/tasks/interview-worker.ts" },
    );
  let worker: WorkerProcess | undefined = await launch();
  const job = interview.name({ name });
  const newest = async () => (await store.journals.newestEntry(job)).entry;
  return {
    gate,
    job,
    begin: () => store.create(interview, job, { name }, Date.now()),
    newest,
    /** The promise of each question that is not known to be answered, once there are those and no others. */
    asks: (...messages: string[]) =>
      until(
        `to be asked ${messages}`,
        async () => {
          const asked = Object.entries((await newest())?.questions ?? {});
          if (asked.map(([, { question }]) => question.message).join() !== messages.join()) return undefined;
          return asked.map(([key, { promiseId }]) => ({ key, promiseId }));
        },
        3 * OFFERED_AGAIN,
      ),
    answer: (promiseId: string, text: string) => store.journals.answer(promiseId, said(text)),
    settled: () => resonate.settled(namespace + job, OFFERED_AGAIN),
    entry: (n: number) => resonate.get(`${namespace}${job}:u${n}`),
    child: (n: number) => resonate.get(`${namespace}${job}:${n}`),
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

/** Answers the second question, then the first, then the third; `between` happens after each answer was given. */
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

/** The journal as it is left behind: each entry written once, in order, without gaps. */
async function journal(the: Scene) {
  const entries = [];
  for (let n = 1; ; n++) {
    const promise = await the.entry(n);
    if (!promise) return entries;
    expect([n, promise.state]).toEqual([n, "resolved"]);
    const { message, questions } = promise.value.data as { message: string; questions: object };
    entries.push([message, Object.keys(questions).join()]);
  }
}

const JOURNAL = [
  ["begun", ""],
  ["begun", "q1"],
  ["begun", "q1,q2"],
  ["second answered", "q1"],
  ["both answered", ""],
  ["both answered", "q3"],
];

describe.concurrent("an interview", () => {
  test("is the same however often its function runs", async () => {
    await using the = await scene("undisturbed");
    await the.begin();
    await interviewed(the);
    expect(await journal(the)).toEqual(JOURNAL);
    // 3 questions and 6 entries written: a replay made no child anew.
    expect(await the.child(8)).toBeDefined();
    expect(await the.child(9)).toBeUndefined();
  });

  test("whose worker is killed after each answer", async () => {
    await using the = await scene("killed");
    await the.begin();
    await interviewed(the, async () => {
      await the.kill();
      await the.start();
    });
    expect(await journal(the)).toEqual(JOURNAL);
    expect(await the.child(9)).toBeUndefined();
  });

  // An entry is made by a create and a settle; before the entry of a question there is the question's promise.
  test.each([
    ["before it is made: the question's promise is there, and nothing tells of it", "promise.create"],
    ["between being made and written", "promise.settle"],
  ])("whose worker is killed at every entry, %s", async (_when, call) => {
    await using the = await scene(`at ${call}`);
    let held = the.gate.hold(call);
    let over = false;
    await the.begin();
    const killing = (async () => {
      for (let kills = 0; ; kills++) {
        await Promise.race([held, until("the end", () => over, 6 * OFFERED_AGAIN)]);
        if (over) return kills;
        await the.kill();
        the.gate.release(call);
        // The same entry is written by the next worker, and the one after it is the next to be held.
        const written = (await journalLength(the)) + 1;
        await the.start();
        const isWritten = async () => (await the.entry(written))?.state === "resolved" || over;
        await until(`entry ${written}`, isWritten, OFFERED_AGAIN);
        held = the.gate.hold(call);
      }
    })();
    await interviewed(the);
    over = true;
    expect(await killing).toBeGreaterThanOrEqual(3);
    expect(await journal(the)).toEqual(JOURNAL);
    expect(await the.child(9)).toBeUndefined();
  });

  test("goes on when calls of its entries fail again and again", async () => {
    await using the = await scene("failing calls");
    let over = false;
    const failing = (async () => {
      let lost = 0;
      while (!over) {
        await Promise.race([the.gate.loseAnswer("promise.settle"), until("the end", () => over, 6 * OFFERED_AGAIN)]);
        lost++;
      }
      return lost;
    })();
    await the.begin();
    await until("several calls to fail", async () => (await failures()) > 6);
    over = true;
    await interviewed(the);
    await failing;
    expect(await journal(the)).toEqual(JOURNAL);

    async function failures() {
      return the.gate.calls.filter(({ kind }) => kind === "promise.settle").length;
    }
  });
});

async function journalLength(the: Scene): Promise<number> {
  for (let n = 1; ; n++) if ((await the.entry(n))?.state !== "resolved") return n - 1;
}
