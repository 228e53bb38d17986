import { expect, test } from "vitest";
import type { DurablePromise } from "../jobs/durable-promise.ts";
import { presentJob, structured } from "./present.ts";
import { arrange, cutToLimit, linksTo, MAX_ANSWER, MIN_ANSWER, noteLimit, noteOn, pick } from "./results.ts";

test("an answer that fits loses nothing: a hundred fired timers keep their times and results", () => {
  const views = Array.from({ length: 100 }, (_, n) => ({
    job_name: `timer_${n}`,
    status: "complete" as const,
    started_at: "2026-11-23T12:00:00.000Z",
    finished_at: "2026-11-23T12:00:01.000Z",
    result: `timer_${n} fired`,
  }));
  const fitted = arrange(
    views.map((view) => cutToLimit(view, {}, MAX_ANSWER)),
    MAX_ANSWER,
  );
  expect(fitted).toEqual({ views, leftOut: 0 });
});

test("fields are picked through lists; missing fields are left out, and a whole field includes its parts", () => {
  const value = { title: "t", rows: [{ n: 1, o: { p: 2, q: 3 } }, { n: 4 }, 5, null], __proto__x: 1 };
  expect(pick(value, ["rows.n", "rows.o.q", "rows.o.none", "none", "__proto__.x"])).toEqual({
    rows: [{ n: 1, o: { q: 3 } }, { n: 4 }, undefined, undefined],
  });
  expect(pick(value, ["rows.o.p", "rows.o", "title", "title"])).toEqual({
    rows: [{ o: { p: 2, q: 3 } }, {}, undefined, undefined],
    title: "t",
  });
});

// If the paths were prepared again for each item, this would take minutes. A call may pick 50 fields of each of 100 results.
test("many fields of a long list are picked without going through all paths for each item", () => {
  const value = { rows: Array.from({ length: 22_000 }, (_, n) => ({ day: "2014-01-01", text: "text", n })) };
  const paths = Array.from({ length: 5_000 }, (_, i) => `rows.${["n", "day", "text"][i % 3]}`);
  for (let times = 0; times < 5; times++) expect(pick(value, paths)).toEqual(value);
});

test("parts of the length of a host's cut are read one after another, each from its offset to the next", () => {
  const result = { text: "🌧 and sun ".repeat(200) };
  const view = { job_name: "weather", status: "complete", result } as const;
  let text = "";
  let most = 0;
  for (let offset: number | undefined = 0; offset !== undefined;) {
    const fitted = arrange([cutToLimit(view, { result: "full", offset, limit: 501 }, MAX_ANSWER)], MAX_ANSWER);
    const { summary } = fitted.views[0] ?? {};
    if (!summary) throw new Error("a part was expected");
    expect(
      Object.keys(summary)
        .filter((key) => /offset|part/.test(key))
        .slice(0, 2),
    ).toEqual(["offset", "part"]);
    expect(summary.offset).toBe(offset);
    most = Math.max(most, summary.part.length);
    text += summary.part;
    offset = summary.next_offset;
  }
  expect([JSON.parse(text), most]).toEqual([result, 501]);
  // A result that is short enough comes unchanged.
  const whole = arrange([cutToLimit(view, { limit: 5_000 }, MAX_ANSWER)], MAX_ANSWER);
  expect(whole.views[0]?.result).toEqual(result);
});

test.each(["a", '"', "é"])("an answer about a job whose name has 500 times %s stays within its limit", (character) => {
  const view = { job_name: character.repeat(500), status: "complete", result: "x".repeat(100_000) } as const;
  const fitted = arrange([cutToLimit(view, { result: "full" }, MAX_ANSWER)], MAX_ANSWER);
  const { structuredContent, content } = structured({ statuses: fitted.views, note: noteOn(fitted) });
  const links = linksTo(fitted.views.map(({ summary }) => summary));
  const message = { structuredContent, content: [...content, ...links] };
  expect(JSON.stringify(message).length).toBeLessThanOrEqual(MAX_ANSWER);
});

test("an answer of the lowest limit about a job with the longest name has its name and status", () => {
  const job = {} as DurablePromise["job"];
  noteLimit(job, MIN_ANSWER);
  const promise = { name: "天".repeat(500), job, state: "resolved", value: "x".repeat(100_000), createdAt: 1 } as const;
  const answer = presentJob(promise as unknown as DurablePromise);
  const expected = { job_name: promise.name, status: "complete", note: expect.anything() };
  expect(answer.structuredContent).toMatchObject(expected);
  expect(JSON.stringify(answer).length).toBeLessThanOrEqual(MIN_ANSWER);
});
