import { expect, test } from "vitest";
import { audit } from "./audit.ts";

const json = (message: object, status = 200) => Response.json({ jsonrpc: "2.0", id: 1, ...message }, { status });
const events = (...messages: object[]) =>
  new Response(messages.map((message) => `event: message\ndata: ${JSON.stringify(message)}\n\n`).join(""));

const PROGRESS = { jsonrpc: "2.0", method: "notifications/progress", params: {} };

/** What is noted of a call that is answered so. */
async function notedOf(answered: Promise<Response>, what = "cancel_job") {
  const noted: unknown[] = [];
  const pending: Promise<unknown>[] = [];
  const scope = { caller: { label: "ada" }, waitUntil: (promise: Promise<unknown>) => void pending.push(promise) };
  const feature = audit(async (caller, what, _params, isRefused) => void noted.push([caller, what, isRefused]));
  feature.note?.(what, {}, scope as never, answered);
  await Promise.all(pending);
  return noted;
}

test.each([
  ["a call that was done", json({ result: { content: [] } }), false],
  ["one that was done, after progress", events(PROGRESS, { result: { content: [] } }), false],
  ["one that the tool refuses", json({ result: { isError: true, content: [] } }), true],
  ["one that the tool refuses, after progress", events(PROGRESS, { result: { isError: true, content: [] } }), true],
  ["one with an error of the protocol", json({ error: { code: -32602, message: "no" } }), true],
  ["one without the scope, or beyond the rate limit", new Response("no", { status: 403 }), true],
  ["one without a body", new Response(null, { status: 202 }), false],
])("the audit log says whether a call was refused: %s", async (_, response, isRefused) => {
  expect(await notedOf(Promise.resolve(response))).toEqual([["ada", "cancel_job", isRefused]]);
  expect(response.bodyUsed).toBe(false);
});

test("a call that fails may have been done, and calls that change nothing are not noted", async () => {
  const failing = Promise.reject(new Error("gone"));
  expect(await notedOf(failing)).toEqual([["ada", "cancel_job", false]]);
  expect(await notedOf(Promise.resolve(json({})), "probe_status")).toEqual([]);
});
