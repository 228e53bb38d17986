import { expect, test } from "vitest";
import { ANSWER_SUBJECT, type CallResult, type ToolAnswer } from "../../core/tools/index.ts";
import { answerSize } from "./call.ts";

/** What a tool's answer becomes. */
const passed = (answer: CallResult, tool: object = {}) =>
  answerSize.call?.(tool as never)?.({} as never, async () => answer);

const textOf = (length: number): ToolAnswer => ({ content: [{ type: "text", text: "a".repeat(length) }] });

test("an answer of up to 50,000 characters passes; a longer one becomes an error that names its length and its job", async () => {
  const fitting = textOf(49_900);
  expect(await passed(fitting)).toBe(fitting);
  const answer = { ...textOf(50_000), [ANSWER_SUBJECT]: { job: "report_1" } };
  const { length } = JSON.stringify(answer);
  const text = `The answer would have ${length} characters; up to 50000 are sent. It is about report_1, which is not changed by this. Ask for less at a time.`;
  expect(await passed(answer)).toEqual({ isError: true, content: [{ type: "text", text }] });
});

test("many short parts count together", async () => {
  const content = Array.from({ length: 600 }, () => ({ type: "text" as const, text: "a".repeat(100) }));
  expect(await passed({ content })).toMatchObject({ isError: true });
});

test("a tool's own limit holds in place of the default", async () => {
  const answer = textOf(60_000);
  expect(await passed(answer, { maxAnswer: 100_000 })).toBe(answer);
  expect(await passed(textOf(11_000), { maxAnswer: 10_000 })).toMatchObject({ isError: true });
});

test("media are added to an answer that fits, and do not count", async () => {
  const media = [{ type: "image" as const, data: "A".repeat(60_000), mimeType: "image/png" }];
  const answer = { ...textOf(10), [ANSWER_SUBJECT]: { media } };
  expect(await passed(answer)).toMatchObject({ content: [...textOf(10).content, ...media] });
});

test("an answer of a wrapped server, a task and a question pass as they are", async () => {
  const answer = textOf(60_000);
  expect(await passed(answer, { job: { returnsToolResult: true } })).toBe(answer);
  const task = { resultType: "task", text: "a".repeat(60_000) } as const;
  expect(await passed(task)).toBe(task);
});
