/** Which callers of a wrapped server share running jobs and fresh results, and whose credentials a call carries. */
import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, test, vi } from "vitest";
import { until } from "../../testing/stack/program.ts";
import type { WrapOptions } from "../../wrap/index.ts";
import { bearer, bearerBindings } from "../auth/support.ts";
import { COUNTING, serve } from "./servers.ts";
import { connect, linesOf, structuredOf, wrappedStack } from "./support.ts";

const TOKENS = { ada: "static-token-of-ada", bob: "static-token-of-bob", eve: "static-token-of-eve" };

const callsFile = async () => join(await mkdtemp(join(tmpdir(), "counting-")), "calls");

/** A stack that knows its callers, each of whom has a token. */
async function forCallers(options: WrapOptions, env: Record<string, string> = {}) {
  const stack = await wrappedStack(options, { bindings: bearerBindings(TOKENS), env, atOnce: true });
  const call = async (who: keyof typeof TOKENS, name: string, args: object) => {
    const client = await connect(stack.url, "2026", {}, bearer(TOKENS[who]));
    try {
      return structuredOf(await client.callTool({ name, arguments: { ...args } }));
    } finally {
      await client.close();
    }
  };
  return { call, [Symbol.asyncDispose]: () => stack[Symbol.asyncDispose]() };
}

afterEach(() => vi.unstubAllEnvs());

test("calls with the same arguments are one job while its result is fresh, per caller or, with shared, for all callers", async () => {
  const file = await callsFile();
  const program = { command: process.execPath, args: [COUNTING], env: { CALLS: file } };
  const policies = {
    read: { freshFor: 3_600_000 },
    fails: { freshFor: 3_600_000 },
    write: { repeatable: true, freshFor: 3_600_000, shared: true },
  };
  await using stack = await forCallers({ name: "counting", ...program, policies, after: 300_000 });
  const ms = 500;
  // Simultaneous calls, and a call after the job has ended. The order of the arguments does not matter.
  await Promise.all([stack.call("ada", "read", { id: "a", ms }), stack.call("ada", "read", { ms, id: "a" })]);
  expect(await stack.call("ada", "read", { id: "a", ms })).toMatchObject({ text: "read a is done" });
  expect(await linesOf(file)).toEqual(["read a"]);
  // Calls with other arguments or from another caller are jobs of their own.
  await stack.call("ada", "read", { id: "a", ms: 0 });
  await stack.call("bob", "read", { id: "a", ms });
  expect(await linesOf(file)).toEqual(["read a", "read a", "read a"]);
  // An error does not stay as a fresh result.
  for (let i = 0; i < 2; i++) expect(await stack.call("ada", "fails", { id: "f" })).toMatchObject({ isError: true });
  expect((await linesOf(file)).filter((line) => line === "fails f")).toHaveLength(2);
  // The policy of `write` shares its results among all callers.
  await Promise.all([stack.call("ada", "write", { id: "w", ms }), stack.call("bob", "write", { id: "w", ms })]);
  expect(await stack.call("eve", "write", { id: "w", ms })).toMatchObject({ text: "write w is done" });
  expect((await linesOf(file)).filter((line) => line === "write w")).toHaveLength(1);
});

test("one caller's calls never take all turns, so another's continue", async () => {
  const file = await callsFile();
  const program = { command: process.execPath, args: [COUNTING], env: { CALLS: file } };
  await using stack = await forCallers({ name: "counting", ...program, concurrency: 4, after: 100 });
  const long = Array.from({ length: 8 }, (_, i) => stack.call("ada", "write", { id: `ada ${i}`, ms: 3_600_000 }));
  await Promise.all(long);
  await until("the calls", async () => (await linesOf(file)).length === 3);
  for (const who of ["bob", "eve", "bob"] as const) {
    const { job_name, text } = await stack.call(who, "write", { id: who });
    const result = job_name === undefined ? text : await stack.call(who, "await_result", { job_names: [job_name] });
    expect(JSON.stringify(result)).toContain(`write ${who} is done`);
  }
  expect((await linesOf(file)).filter((line) => line.includes("ada"))).toHaveLength(3);
  // Jobs of known callers are counted, so even a call that ends at once is a job.
  expect((await stack.call("bob", "list_jobs", {})).jobs).toHaveLength(2);
});

test("an expired result is requested again", async () => {
  const file = await callsFile();
  const program = { command: process.execPath, args: [COUNTING], env: { CALLS: file } };
  await using stack = await forCallers({ name: "counting", ...program, policies: { read: { freshFor: 1 } } });
  await stack.call("ada", "read", { id: "a" });
  await until("it to be requested again", async () => {
    await stack.call("ada", "read", { id: "a" });
    return (await linesOf(file)).length >= 2;
  });
});

test.each(["http", "stdio"])(
  "each caller's calls carry that caller's credentials, and no token of the edge (%s)",
  async (how) => {
    const file = await callsFile();
    await using server = await serve(COUNTING, [], { CALLS: file });
    const isHttp = how === "http";
    const name = isHttp ? "x-whose" : "WHOSE";
    const target: Partial<WrapOptions> = isHttp
      ? { url: server.url, allowPrivate: true, headers: { "x-whose": "nobody" } }
      : { command: process.execPath, args: [COUNTING], env: { CALLS: file, WHOSE: "nobody" } };
    const credentials = JSON.stringify({ ada: { [name]: "ada's" }, bob: { [name]: "bob's" } });
    // Listing the tools has no caller, and needs none.
    vi.stubEnv("CREDENTIALS", credentials);
    await using stack = await forCallers(
      { name: "counting", ...target, credentials: "CREDENTIALS" },
      { CREDENTIALS: credentials },
    );
    expect(await stack.call("ada", "whose", { id: "1" })).toMatchObject({ text: "ada's" });
    expect(await stack.call("bob", "whose", { id: "2" })).toMatchObject({ text: "bob's" });
    expect(await stack.call("ada", "whose", { id: "3" })).toMatchObject({ text: "ada's" });
    const answer = await stack.call("eve", "whose", { id: "4", job_name: "eve" });
    const why = answer.isError ? answer : await stack.call("eve", "await_result", { job_names: [answer.job_name] });
    expect(JSON.stringify(why)).toContain("this caller has no credentials for counting");
    expect((await linesOf(file)).toSorted()).toEqual(["whose 1", "whose 2", "whose 3"]);
  },
);
