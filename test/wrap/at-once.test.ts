/** Where the edge reaches its worker, calls that end at once are answered without becoming jobs. The server counts calls. */
import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { until } from "../../testing/stack/program.ts";
import type { TestStack } from "../../testing/stack/stack.ts";
import type { WrapOptions } from "../../wrap/index.ts";
import { COUNTING, type HttpServer, serve } from "./servers.ts";
import { connect, linesOf, structuredOf, wrappedStack } from "./support.ts";

describe.each(["stdio", "HTTP"])("over %s", (way) => {
  let file: string;
  let server: HttpServer | undefined;
  let stack: TestStack;
  beforeAll(async () => {
    file = join(await mkdtemp(join(tmpdir(), "at-once-")), "calls");
    if (way === "HTTP") server = await serve(COUNTING, [], { CALLS: file });
    const target: Omit<WrapOptions, "name"> = server
      ? { url: server.url, allowPrivate: true }
      : { command: process.execPath, args: [COUNTING], env: { CALLS: file } };
    stack = await wrappedStack({ name: "counting", ...target, after: 1_000 }, { atOnce: true });
  });
  afterAll(async () => {
    await stack?.[Symbol.asyncDispose]();
    await server?.[Symbol.asyncDispose]();
  });

  const call = async (name: string, args: object) => {
    const client = await connect(stack.url);
    try {
      return structuredOf(await client.callTool({ name, arguments: { ...args } }));
    } finally {
      await client.close();
    }
  };
  const jobs = async () => (await stack.call("list_jobs", {})).jobs as { job_name: string; status: string }[];
  const end = async (name: string) =>
    (await stack.call("await_result", { job_names: [name] })) as Record<string, object>;

  test("a call that ends at once gets the server's own answer and is not a job, unless it has a job name", async () => {
    // Calls are jobs until the worker has a connection.
    await until("a call without a job", async () => {
      const before = (await jobs()).length;
      const { text } = await call("write", { id: "first" });
      return text === "write first is done" && (await jobs()).length === before;
    });
    const before = (await jobs()).length;
    expect(await call("read", { id: "a" })).toMatchObject({ text: "read a is done", isError: false });
    expect(await call("fails", { id: "a" })).toMatchObject({ text: "no a today", isError: true });
    const answer = { content: [{ type: "text", text: "x", _meta: { of: 1 } }], structuredContent: { a: 1 } };
    expect(await call("says", { answer: JSON.stringify(answer) })).toMatchObject({ content: answer.content, a: 1 });
    expect(await linesOf(file, " a")).toEqual(["read a", "fails a"]);
    expect(await jobs()).toHaveLength(before);
    expect((await call("write", { id: "n", job_name: "n" })).text).toBe("write n is done");
    expect((await call("write", { id: "n", job_name: "n" })).text).toBe("write n is done");
    expect(await linesOf(file, " n")).toEqual(["write n"]);
    expect(await jobs()).toHaveLength(before + 1);
  });

  test.skipIf(way === "HTTP")(
    "a call that takes longer, or has a large answer, becomes a job and is sent once",
    async () => {
      const [{ job_name }, large] = await Promise.all([
        call("write", { id: "long", ms: 3_000 }),
        call("large", { size: 60_000 }),
      ]);
      expect(job_name).toMatch(/^counting\.write\./);
      expect(JSON.stringify(await end(job_name))).toContain("write long is done");
      expect(await linesOf(file, " long")).toEqual(["write long"]);
      expect(large.job_name).toMatch(/^counting\.large\./);
      expect(await linesOf(file, " 60000")).toEqual(["large 60000"]);
    },
  );

  test("a call whose worker dies is sent again if it only reads; otherwise its outcome is found or reported as unknown", async () => {
    const calls = ["write", "read"].map((name) => call(name, { id: `${name}-killed`, ms: 4_000 }));
    const answers = await Promise.all(calls);
    await stack.workers[0]?.kill();
    await stack.workers[0]?.start();
    const [writeResult = {}, readResult = {}] = await Promise.all(answers.map(({ job_name }) => end(job_name)));
    expect(JSON.stringify(readResult)).toContain("read read-killed is done");
    expect(await linesOf(file, " write-killed")).toEqual(["write write-killed"]);
    // A program, and a call in it, outlive the worker.
    expect(JSON.stringify(writeResult)).toContain(way === "stdio" ? "write write-killed is done" : "effect is unknown");
  });

  test("while the store is away, a call that ends at once is answered, and one that takes longer gets an error that says what is known", async () => {
    let n = 0;
    await until(
      "calls while the worker still knows that no operator holds them back",
      async () => {
        const id = `away-${++n}`;
        // After this call the worker knows for a few seconds that no operator holds calls back.
        await call("write", { id: "before" });
        await stack.resonate.kill();
        const [short, long, read] = await Promise.all([
          call("write", { id: `${id}-short` }),
          call("write", { id: `${id}-lost`, ms: 1_000 }),
          call("read", { id: `${id}-lost`, ms: 1_000 }),
        ]);
        await stack.resonate.start();
        if (![short, long, read].every(({ text }) => / is done|is unavailable/.test(text))) return false;
        const [shortLines, lines] = await Promise.all([linesOf(file, `${id}-short`), linesOf(file, `${id}-lost`)]);
        expect(shortLines).toHaveLength(short.isError ? 0 : 1);
        if (short.isError || lines.length < 2) return false;
        expect(long.text).toMatch(/unavailable: .*The call was sent to counting, and its outcome is lost/);
        expect(read.text).toMatch(/unavailable: .*that is safe/);
        return lines.length === 2;
      },
      100_000,
    );
  });

  test.each(["2025", "2026"] as const)(
    "a call that its client cancels at once is cancelled at the server (%s)",
    async (era) => {
      const client = await connect(stack.url, era);
      const abort = new AbortController();
      const options = { signal: abort.signal, onprogress: () => {} };
      const calling = client.callTool({ name: "steps", arguments: { id: `left-${era}`, ms: 60_000 } }, options);
      const hasFailed = calling.then(
        () => false,
        () => true,
      );
      await until("the call", async () => (await linesOf(file, `steps left-${era}`)).length === 1);
      abort.abort();
      expect(await hasFailed).toBe(true);
      await until(
        "the server to hear of it",
        async () => (await linesOf(file, `cancelled left-${era}`)).length === 1,
        30_000,
      );
      await client.close();
    },
  );

  test("a call with a label is a job from the start", async () => {
    const before = (await jobs()).length;
    const client = await connect(stack.url);
    const _meta = { "durable-mcp/labels": ["mine"] };
    const answer = await client.callTool({ name: "write", arguments: { id: "labelled" }, _meta });
    await client.close();
    expect(answer.isError).not.toBe(true);
    expect(await jobs()).toHaveLength(before + 1);
  });

  test.skipIf(way === "HTTP")("a call without a worker waits as a job and is sent once", async () => {
    await stack.workers[0]?.kill();
    const { job_name } = await call("write", { id: "waits" });
    await stack.workers[0]?.start();
    expect(JSON.stringify(await end(job_name))).toContain("write waits is done");
    expect(await linesOf(file, " waits")).toEqual(["write waits"]);
  });
});

test("a call that became a job may wait for an answer for longer than its timeout", async () => {
  const env = { CALLS: join(await mkdtemp(join(tmpdir(), "at-once-")), "calls") };
  const program = { command: process.execPath, args: [COUNTING], env };
  await using stack = await wrappedStack({ name: "counting", ...program, timeout: 1_000 }, { atOnce: true });
  const client = await connect(stack.url, "2025", { elicitation: { form: {} } });
  client.setRequestHandler("elicitation/create", async () => {
    await delay(3_000);
    return { action: "accept", content: { sure: true } };
  });
  const jobs = async () => ((await stack.call("list_jobs", {})).jobs as unknown[]).length;
  await until("a call that is no job", async () => {
    const before = await jobs();
    await client.callTool({ name: "write", arguments: { id: "first" } });
    return (await jobs()) === before;
  });
  const { text } = structuredOf(await client.callTool({ name: "asks", arguments: { id: "late" } }));
  expect(text).toContain('"sure":true');
  expect(await linesOf(env.CALLS, " late")).toEqual(["asks late", "answered late"]);
  await client.close();
});
