import { expect, test } from "vitest";
import { openTables } from "../../test/support/open-tables.ts";
import { operate } from "./handler.ts";
import type { OperatorOptions } from "./options.ts";
import { OPERATE_TABLES, OperateTables } from "./tables.ts";

const LOCAL = { variables: { OPERATE: "local" } } as unknown as OperatorOptions;

/** The status and the body of a request's answer, and the calls that reach the operators' object. */
async function ask(path: string, body?: object) {
  const calls: unknown[] = [];
  const called = async (...args: unknown[]) => {
    calls.push(args);
    return {};
  };
  const operators = () => new Proxy({}, { get: () => called });
  const request = new Request(`http://localhost/operate/${path}`, {
    ...(body && { method: "POST", body: JSON.stringify(body) }),
  });
  const answer = await operate(request, { ...LOCAL, operators } as unknown as OperatorOptions);
  return { status: answer.status, body: (await answer.json()) as { error?: string }, calls };
}

test.each<[string, object?]>([
  ["overview?span=year"],
  ["overview?span=day&of=ada"],
  ["metrics?name=jobs-fail"],
  ["jobs?callers=ada"],
  ["jobs?state=failing&reason=one"],
  ["jobs?state=failed&state=sleeping"],
  ["jobs?state=lost"],
  ["job?name=tea"],
  ["job?job=tea&values=yes"],
  ["audit-log?limit=-1"],
  ["audit-log?limit=5000"],
  ["audit-log?limit=many"],
  ["audit-log?from=1"],
  ["action?n=one"],
  ["preview", { state: "sleeping", callers: "ada" }],
  ["preview", { state: "failing", reason: "one reason" }],
  ["preview", { state: "sleeping", caller: { key: "ada" } }],
  ["act", { do: "cancel", filter: { state: "failing", reason: "one reason" } }],
  ["act", { do: "cancel", filter: { state: "sleeping" }, preview: 1 }],
  ["act", { do: "cancel", jobs: ["tea"], preview: 1 }],
  ["act", { do: "cancel", jobs: ["tea"], from: "start" }],
  ["act", { do: "cancel" }],
  ["act", { do: "cancel", jobs: [] }],
  ["act", { do: "retry", preview: "all" }],
  ["act", { do: "pause", of: { caller: "ada", kind: "tea" } }],
  ["act", { do: "block", caller: "ada", until: "tomorrow" }],
])("a request that says more or else than its path knows is refused as a whole: %s %j", async (path, body) => {
  const { status, body: answer, calls } = await ask(path, body);
  expect([status, calls]).toEqual([400, []]);
  expect(answer.error).toMatch(/./);
});

test.each<[string, object?]>([
  ["jobs?state=blocked&reason=one&kind=tea&caller=ada"],
  ["preview", { state: "failed", reason: "one", kind: "tea", caller: "ada" }],
  ["act", { do: "retry", preview: 1, from: "start" }],
  ["act", { do: "cancel", jobs: ["tea"] }],
])("a request that fits reaches the object as it is: %s %j", async (path, body) => {
  const { status, calls } = await ask(path, body);
  expect([status, calls.length]).toEqual([200, 1]);
  if (body) expect((calls[0] as unknown[]).at(-1)).toEqual(body);
});

test.each([
  ["", 100],
  ["limit=2", 2],
  ["limit=0", 0],
  ["limit=1000", 1_000],
])("of 1,500 entries of the audit log a request with %j reads %i", async (query, count) => {
  const tables = new OperateTables(openTables([OPERATE_TABLES]));
  tables.transaction(() => {
    for (let n = 0; n < 1_500; n++) tables.audit.note("ada", "retry", {});
  });
  const operators = () => ({ auditLog: async (page: object) => tables.audit.page(page) });
  const options = { ...LOCAL, operators } as unknown as OperatorOptions;
  const answer = await operate(new Request(`http://localhost/operate/audit-log?${query}`), options);
  expect(((await answer.json()) as { entries: object[] }).entries.length).toBe(count);
});
