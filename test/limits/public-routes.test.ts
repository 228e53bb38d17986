/** The routes beside `/mcp`, attacked by strangers and by a caller: each explains its refusal and still serves others. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { newToken } from "../../cli/static-token.ts";
import { reportToken } from "../../core/jobs/reports.ts";
import { bearer, bearerBindings, callerAt, type TestCaller } from "../auth/support.ts";
import { type Stack, startStack } from "../support/stack.ts";
import { call, type RawAnswer, send } from "./support.ts";

const VIEW_KEY = "v".repeat(32);
const SAME = { "sec-fetch-site": "same-origin" };
const operator = newToken();
const DEEP = `${"[".repeat(50_000)}${"]".repeat(50_000)}`;
const NAMES = Array.from({ length: 200 }, (_, n) => `timer_${n}`);

let stack: Stack;
let ada: TestCaller;
let eve: TestCaller;
beforeAll(async () => {
  stack = await startStack({
    workers: 0,
    bindings: {
      ...bearerBindings({ ada: "static-token-of-ada", eve: "static-token-of-eve" }),
      VIEW_KEY,
      PUBLIC_URL: "https://jobs.example",
      ALLOWED_HOSTS: "127.0.0.1,jobs.example",
      OPERATOR_TOKENS: JSON.stringify([{ name: "op", sha256: operator.sha256 }]),
    },
  });
  ada = callerAt(stack.url, "static-token-of-ada");
  eve = callerAt(stack.url, "static-token-of-eve");
  await ada.call("set_timer", { timer_name: "hers", seconds: 3_600 });
});
afterAll(() => stack?.[Symbol.asyncDispose]());

const at = (path: string) => `${stack.origin}${path}`;
const operating = (path: string, body?: unknown) =>
  send(at(`/operate/${path}`), {
    method: body === undefined ? "GET" : "POST",
    headers: { ...bearer(operator.token), ...SAME },
    body,
  });

/** Makes a call as Eve. Returns the message of the error, of the protocol or the tool, or else the result as text. */
const asks = async (name: string, args: object) => {
  const { messages, text } = await send(stack.url, { headers: bearer("static-token-of-eve"), body: call(name, args) });
  const { result, error } = messages.at(-1) ?? {};
  return error?.message ?? (result?.isError ? result.content[0].text : JSON.stringify(result ?? text));
};

test("strangers who are refused at every route lock nobody out", async () => {
  const doors = ["/callbacks/forged", "/files/forged", "/reports", "/operate/overview", "/operate/act"];
  const seen = new Set<number>();
  for (const door of doors) {
    const method = /files|overview/.test(door) ? "GET" : "POST";
    const knock = () =>
      send(at(door), { method, headers: bearer("guessed"), body: method === "POST" ? {} : undefined });
    const answers = await Promise.all(Array.from({ length: 130 }, knock));
    for (const { status } of answers) seen.add(status);
  }
  expect([...seen].sort()).toEqual([401, 404]);
  // Without Cloudflare in front, no client address is known, and so no attempts are counted.
  expect((await operating("overview")).status).toBe(200);
  const reports = { headers: bearer(await reportToken(VIEW_KEY)), body: { ended: {}, started: {} } };
  expect((await send(at("/reports"), reports)).status).toBe(204);
  expect(await ada.call("probe_status", { job_names: ["timer_hers"] })).toMatchObject({
    statuses: [{ status: "running" }],
  });
});

type Attack = [what: string, attack: () => Promise<RawAnswer>, status: number, words: RegExp];
const report = async (body: unknown, headers = {}) =>
  send(at("/reports"), { headers: { ...bearer(await reportToken(VIEW_KEY)), ...headers }, body });

test.each<Attack>([
  ["reports nested deep", () => report(DEEP), 400, /not a batch/],
  ["a report for the caller __proto__", () => report('{"ended":{"__proto__":["timer_hers"]}}'), 204, /^$/],
  [
    "a report of a worker with numbers below zero",
    () => report({ worker: { worker: "w", n: -1 } }),
    400,
    /not a batch/,
  ],
  ["a report by GET", () => send(at("/reports"), { method: "GET" }), 404, /Not found/],
  ["a report by PUT", () => send(at("/reports"), { method: "PUT", body: {} }), 404, /Not found/],
  ["a report with a caller's token", () => report({}, bearer("static-token-of-eve")), 401, /workers alone/],
  ["an action nested deep", () => operating("act", DEEP), 400, /not an action/],
  [
    "an action for 10,001 jobs",
    () => operating("act", { do: "retry", jobs: Array(10_001).fill("x") }),
    400,
    /not an action/,
  ],
  ["an action of a megabyte", () => operating("act", "x".repeat(1_000_001)), 413, /too large/],
  [
    "a filter and jobs",
    () => operating("act", { do: "cancel", jobs: ["x"], filter: {} }),
    400,
    /Unrecognized key: .*filter/,
  ],
  ["an unknown action", () => operating("act", { do: "rm -rf" }), 400, /not an action/],
  ["an action for nobody", () => operating("act", { do: "block", caller: "" }), 400, /not an action/],
  ["an unknown filter", () => operating("jobs?state=all"), 400, /state: .*expected one of .*failed/],
  ["a job by a forged id", () => operating("job?job=..%2F..%2Fkey"), 404, /No job/],
  ["a job by an id of 10 KB", () => operating(`job?job=${"x".repeat(10_000)}`), 400, /job: Too big: .*1000 characters/],
  // The runtime refuses this one.
  ["a job by an id of 100 KB", () => operating(`job?job=${"x".repeat(100_000)}`), 414, /URI too long/],
  ["a callback by GET", () => send(at("/callbacks/x"), { method: "GET" }), 404, /void/],
  ["a callback by the address of a page", () => send(at("/callbacks/x.y.z"), { body: {} }), 404, /void/],
  [
    "a callback with an address of 10 KB",
    () => send(at(`/callbacks/${"A".repeat(10_000)}`), { body: {} }),
    404,
    /void/,
  ],
  ["a file by POST", () => send(at("/files/x"), { body: {} }), 404, /Not found/],
  ["a file by dots", () => send(at("/files/..%2F..%2Fetc%2Fpasswd"), { method: "GET" }), 404, /void/],
])("%s is refused or has no effect", async (_what, attack, status, words) => {
  const answer = await attack();
  expect([answer.status, answer.text]).toEqual([status, expect.stringMatching(words)]);
});

test.each<[string, string, object, RegExp]>([
  ["another caller's job is not forgotten", "forget_jobs", { job_names: ["timer_hers"] }, /not_found.*timer_hers/],
  ["a list of 200 names is refused", "forget_jobs", { job_names: NAMES }, /100/],
  ["an empty list of names is refused", "forget_jobs", { job_names: [] }, /job_names/],
  ["names that are objects are refused", "forget_jobs", { job_names: [{ toString: 1 }] }, /job_names/],
  ["a name with a path is not found", "forget_jobs", { job_names: ["../timer_hers"] }, /not_found/],
  ["a schedule of schedules is refused", "schedule_job", { name: "s", tool: "schedule_job", every: 60 }, /tool/],
  ["a schedule each second is refused", "schedule_job", { name: "s", tool: "set_timer", every: 1 }, /60/],
  [
    "a schedule by a costly cron is refused",
    "schedule_job",
    { name: "s", tool: "set_timer", cron: "*,".repeat(50_000) },
    /cron/,
  ],
  [
    "a schedule's name with a separator is refused",
    "schedule_job",
    { name: "a:b", tool: "set_timer", every: 60 },
    /name/,
  ],
  [
    "arguments nested deep are refused",
    "schedule_job",
    { name: "s", tool: "set_timer", every: 60, arguments: DEEP },
    /arguments/,
  ],
])("%s", async (_what, name, args, words) => {
  expect(await asks(name, args)).toMatch(words);
  expect(await ada.call("probe_status", { job_names: ["timer_hers"] })).toMatchObject({
    statuses: [{ status: "running" }],
  });
  expect((await eve.call("list_jobs", {})).jobs).toEqual([]);
});
