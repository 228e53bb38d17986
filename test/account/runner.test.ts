// The jobs that the account's own Workers run, and those that they leave to other workers.

import { randomBytes } from "node:crypto";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startEdge } from "../../cli/launcher/local-edge.ts";
import { newToken } from "../../cli/static-token.ts";
import { type Program, run, until, watch } from "../../testing/stack/program.ts";
import { startWorker } from "../../testing/stack/worker-process.ts";
import { currentClient, type McpClient } from "../support/clients.ts";
import { resonateAt } from "../support/resonate.ts";

const { token, sha256 } = newToken();
let env: Record<string, string>;
let edge: Program;
let client: McpClient;
const cleanup = new AsyncDisposableStack();
beforeAll(async () => {
  const ENCRYPTION_KEYS = randomBytes(32).toString("base64");
  const started = cleanup.use(
    await startEdge({
      port: 0,
      entry: "test/account/fixture/account-edge.ts",
      bindings: {
        AUTH_MODE: "none",
        RATE_LIMIT: "0",
        WAIT_SECONDS: "45",
        ENCRYPTION_KEYS,
        RESONATE_PUBLIC: "1",
        RESONATE_TOKENS: JSON.stringify([{ name: "machine", sha256 }]),
      },
    }),
  );
  edge = watch(started.process);
  env = { RESONATE_URL: `${started.url}/resonate`, RESONATE_TOKEN: token, ENCRYPTION_KEYS };
  client = cleanup.use(await currentClient.connect(`${started.url}/mcp`));
});
afterAll(() => cleanup.disposeAsync());

const resonate = () => resonateAt(env.RESONATE_URL ?? "", undefined, token);
const statusOf = async (job: string): Promise<string> =>
  (await client.callTool("probe_status", { job_names: [job] })).content.statuses[0].status;

/** Runs a command of an operator, to its end. */
async function operate(...args: string[]): Promise<string> {
  const program = run("cli/main.ts", { args, env });
  expect((await program.exited).exitCode, program.output()).toBe(0);
  return program.output();
}

test("encrypted jobs run, and their stored arguments and results stay encrypted", async () => {
  const { content } = await client.callTool("timer", { timer_name: "a secret", seconds: 1 });
  expect(content).toMatchObject({ status: "complete" });
  const { data } = await resonate().call("promise.get", { id: "timer_a secret" });
  if (typeof data !== "object") throw new Error(data);
  expect([data.promise.param.data, data.promise.value.data]).toEqual(Array(2).fill(expect.stringMatching(/^sealed:/)));
});

test("jobs of a paused kind sleep until the kind is resumed", async () => {
  expect(await operate("pause", "timer")).toContain("are paused since");
  const { content } = await client.callTool("set_timer", { timer_name: "paused", seconds: 1 });
  await resonate().asleep("timer_paused");
  await until("its time to be over", () => Date.now() > Date.parse(content.fires_at) + 500);
  expect(await statusOf("timer_paused")).toBe("running");
  expect(await operate("resume", "timer")).toContain("continue");
  await until("it to end", async () => (await statusOf("timer_paused")) === "complete", 30_000);
});

test("crypto.randomUUID() outside a step is refused in a Worker, too", async () => {
  const natural = await client.callTool("numbered", { name: "natural", natural: true });
  expect(natural.text).toContain("crypto.randomUUID() was called outside of a step. Write ctx.uuid()");
  const written = await client.callTool("numbered", { name: "written", natural: false });
  expect(written.content.result.number).toMatch(/^[\da-f]{8}-[\da-f]{4}-4/);
});

test("steps that fail in a forEach, which nothing awaits, fail the job in a Worker, too", async () => {
  const { content } = await client.callTool("forgetful", { name: "forgets" });
  expect(content).toMatchObject({
    status: "failed",
    error: expect.stringMatching(/[ab] is gone\. Each call of ctx is awaited/),
  });
});

test("partial results can be read in order and in parts, while the job runs and afterwards", async () => {
  const call = client.callTool("telling", { name: "one", values: 14 });
  const probe = async (from?: number) => {
    const about = { job_names: ["telling_one"], ...(from !== undefined && { partial_from: from }) };
    return (await client.callTool("probe_status", about)).content.statuses[0];
  };
  const first = await until("partial results", async () => {
    const { partial } = await probe();
    return partial?.more && partial;
  });
  const numbers = ({ values }: { values: { n: number }[] }) => values.map(({ n }) => n);
  expect(numbers(first)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9]);
  const { running, partial } = (
    await client.callTool("await_result", { job_names: ["telling_one"], timeout_seconds: 1, partial_from: 9 })
  ).content;
  expect([running, numbers(partial.telling_one)[0]]).toEqual([["telling_one"], 10]);
  expect((await call).content).toMatchObject({ status: "complete", result: { told: 14 } });
  const rest = await probe(first.next_offset);
  expect([rest.status, numbers(rest.partial), rest.partial.next_offset]).toEqual([
    "complete",
    [10, 11, 12, 13, 14],
    14,
  ]);
  expect((await probe()).partial).toBeUndefined();
});

test("a job of a kind that needs a container fails at once, and its error says so", async () => {
  const { isError, text } = await client.callTool("heavy", { name: "one" });
  expect(isError).toBe(true);
  expect(text).toContain("heavy needs a container, and this deployment runs jobs in Workers");
});

test("a kind that the runner lacks is left to a worker, which also runs kinds that need a container", async () => {
  const foreign = client.callTool("foreign", { name: "one" });
  const left = () => edge.logs().filter(({ msg, job }) => msg === "job left alone" && job === "foreign_one");
  await until("the runner to see it", () => left().length > 0);
  // Other kinds continue in the meantime, and the runner neither claims this job nor looks at it again for half a minute.
  await client.callTool("timer", { timer_name: "beside", seconds: 1 });
  expect((await resonate().task("foreign_one"))?.state).toBe("pending");
  const looks = left().map(({ time }) => Date.parse(String(time)));
  expect(
    looks
      .slice(1)
      .map((at, i) => at - (looks[i] ?? 0))
      .filter((pause) => !(pause > 29_000)),
  ).toEqual([]);
  await using _ = await startWorker(env, { script: "test/account/fixture/account-worker.ts" });
  const byWorker = { status: "complete", result: { by: "worker" } };
  expect((await foreign).content).toMatchObject(byWorker);
  expect((await client.callTool("heavy", { name: "two" })).content).toMatchObject(byWorker);
});
