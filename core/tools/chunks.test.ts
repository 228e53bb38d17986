import * as fc from "fast-check";
import { expect, test, vi } from "vitest";
import { JOB_NAME, SimulatedJob } from "../../testing/simulation/simulated-job.ts";
import { trial } from "../../testing/simulation/trial.ts";
import type { Context } from "../author/context.ts";
import { hashed } from "../author/job.ts";
import type { DurablePromise } from "../jobs/durable-promise.ts";
import type { RemoteStore } from "../jobs/remote-store.ts";
import { PARTS_KEY, type Parts, partsIn } from "../resonate/codec.ts";
import { chunkId } from "../resonate/ids.ts";
import { CHUNK_CHARACTERS, completeResult, viewOfRange } from "./byte-range.ts";
import { contentsOf, storeInParts } from "./chunks.ts";
import { cutToLimit, pick, type Selection } from "./results.ts";

/** A simulated job whose only step stores this value in parts. */
function bringing(value: object): SimulatedJob {
  const code = (ctx: Context) => ctx.step("bring", (step) => storeInParts(step, value));
  // Hashing takes real time, during which the simulated clock must not jump.
  const simulated: SimulatedJob = new SimulatedJob(code, {
    steps: [{ attempt: (_attempt, next) => simulated.clock.process().busy(next()) }],
  });
  return simulated;
}

/** Reads ranges of the job's result as clients get them; `asked` are the chunks that were read. */
function reader(simulated: SimulatedJob, value: unknown) {
  const asked: string[] = [];
  const child = async (id: string) => {
    asked.push(id);
    return simulated.sim.get(id);
  };
  const store = { child } as unknown as RemoteStore;
  const promise = {
    id: JOB_NAME,
    name: JOB_NAME,
    job: { returnsToolResult: true },
    state: "resolved",
    value,
    createdAt: 0,
  } as unknown as DurablePromise;
  const read = async (selection: Selection, limit: number) => {
    asked.length = 0;
    return partsIn((await viewOfRange(store, promise, selection, limit)).result) as Parts;
  };
  return { asked, read, store };
}

test("a large value is kept in chunks, and a byte range reads only the chunks that it needs", async () => {
  const value = { list: Array.from({ length: 60_000 }, (_, i) => `${i} é 😀 "`), last: { n: 1, text: "the end" } };
  const json = JSON.stringify(value);
  const simulated = bringing(value);
  const { value: result } = (await simulated.toEnd()) as { value: unknown };
  expect(JSON.stringify(result).length).toBeLessThan(10_000);
  const { asked, read, store } = reader(simulated, result);
  const parts = partsIn(result) as Parts;
  expect(parts).toMatchObject({ characters: json.length, offset: 0 });
  expect(json.startsWith(parts.text)).toBe(true);
  expect(parts.fields).toEqual({ list: JSON.stringify(value.list).length, last: JSON.stringify(value.last).length });

  expect((await read({}, 50_000)).text).toBe(parts.text);
  expect(asked).toEqual([]);
  const offset = 2 * CHUNK_CHARACTERS - 20;
  expect(await read({ result: "full", offset }, 100)).toMatchObject({ text: json.slice(offset, offset + 100), offset });
  expect(asked).toEqual([1, 2].map((n) => chunkId(JOB_NAME, parts.id, n)));
  expect(await read({ result: "full", offset: json.length + 5 }, 100)).toMatchObject({ text: "" });
  expect(await read({ fields: ["last.text", "none.such"], offset: 0 }, 100)).toMatchObject({
    text: '{"last":{"text":"the end"}}',
    characters: 27,
  });
  expect(await completeResult(store, JOB_NAME, parts)).toEqual(value);
});

test("after a worker has died while it stored chunks, the next one completes them under the same ids", async () => {
  const value = { text: "0123456789".repeat(CHUNK_CHARACTERS) };
  const id = await hashed(JSON.stringify(value));
  const chunks = Array.from({ length: 11 }, (_, n) => chunkId("", id, n));
  const code = () => (ctx: Context) => ctx.step("bring", (step) => storeInParts(step, value));
  const whole = await trial(code, {}, { isReal: true }, { deaths: [], isWarm: false });
  for (let at = 1; at <= whole.requests; at += 3) {
    const deaths = [{ at, how: "alone" as const }];
    const end = await trial(code, {}, { isReal: true }, { deaths, isWarm: false });
    expect(end).toMatchObject({ outcome: "complete", value: whole.value });
    const parts = end.points.filter((point) => chunks.some((chunk) => point.includes(chunk)));
    // The worker that died had written some of them, and the next one found those.
    expect(new Set(parts).size).toBe(11);
    expect(parts.length).toBeLessThanOrEqual(22);
  }
});

test("the table of contents locates each field of the objects in a value", () => {
  const key = fc.oneof(fc.string(), fc.constantFrom("a", "a:", '":"1+2"', "1+2", "é😀", "__proto__"));
  const json = fc.letrec((tie) => ({
    value: fc.oneof(
      { depthSize: "small" },
      fc.jsonValue({ maxDepth: 1 }),
      fc.dictionary(key, tie("value"), { maxKeys: 5 }),
    ),
  })).value;
  fc.assert(
    fc.property(fc.dictionary(key, json, { minKeys: 1, maxKeys: 5 }), (given) => {
      const value = JSON.parse(JSON.stringify(given));
      const text = JSON.stringify(value);
      const { shape, fields } = contentsOf(value);
      const filled = (of: unknown) =>
        JSON.stringify(of).replace(/(?<=:)"(\d+)\+(\d+)"/g, (_, begin, length) =>
          text.slice(Number(begin), Number(begin) + Number(length)),
        );
      expect(filled(shape)).toBe(text);
      for (const [name, size] of Object.entries(fields)) {
        expect(JSON.stringify(value[name]).length).toBe(size);
        if (!name.includes(".") && name !== "")
          expect(filled(pick(shape, [name]))).toBe(JSON.stringify(pick(value, [name])));
      }
    }),
  );
});

test("a value with very many fields has a small table of contents", () => {
  const value = Object.fromEntries(
    Array.from({ length: 25 }, (_, i) => [`f${i}`, { ...Array(29).fill({ x: { y: 1 } }) }]),
  );
  expect(JSON.stringify(contentsOf(value)).length).toBeLessThan(20_000);
  expect(JSON.stringify(contentsOf({ [PARTS_KEY.repeat(5_000)]: 1 })).length).toBeLessThan(100_000);
});

test("the text of a deeply nested value is made once for its table of contents, and not for each object around it", () => {
  let value: object = { text: "x".repeat(100_000) };
  for (let depth = 0; depth < 200; depth++) value = { within: value };
  const stringify = vi.spyOn(JSON, "stringify");
  const { shape, fields } = contentsOf(value);
  const made = stringify.mock.results.reduce((sum, { value }) => sum + value.length, 0);
  stringify.mockRestore();
  const { length } = JSON.stringify(value);
  expect(fields).toEqual({ within: length - '{"within":}'.length });
  expect(JSON.stringify(shape)).toMatch(/^(\{"within":){200}\{"text":"2008\+100002"\}{201}$/);
  expect(made).toBeLessThan(2 * length);
});

test("a result that a function returns under the key of the table of contents is a result like any other", () => {
  for (const result of [
    { [PARTS_KEY]: 5 },
    { [PARTS_KEY]: null },
    { [PARTS_KEY]: { id: "a" } },
    { [PARTS_KEY]: { text: "a", characters: 5 } },
    { [PARTS_KEY]: { id: "a", text: "a", characters: {} } },
    null,
    "text",
  ])
    expect(cutToLimit({ job_name: "a", status: "complete", result }, {}, 50_000).result?.value).toEqual(result);
});
