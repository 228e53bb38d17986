/** Servers with other tools than this repository's: the engine knows nothing about weather. */
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { execa } from "execa";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startStack, type TestStack } from "../../testing/index.ts";
import { run } from "../../testing/stack/program.ts";
import { currentClient, type McpClient } from "../support/clients.ts";

const HOUR = 3_600_000;
const BUILT_IN = [
  "probe_status",
  "await_result",
  "answer_question",
  "cancel_job",
  "list_jobs",
  "forget_jobs",
  "schedule_job",
  "job_card",
  "answer_for_user",
];

describe("a server with timers only", () => {
  let stack: TestStack;
  beforeAll(async () => {
    stack = await startStack({ edge: "test/package/timer/edge.ts", worker: "test/package/timer/worker.ts" });
  });
  afterAll(() => stack?.[Symbol.asyncDispose]());

  test("describes its own tools and no others", async () => {
    await using client = await currentClient.connect(stack.url);
    const tools = await client.listTools();
    expect(tools.map(({ name }) => name)).toEqual(["set_timer", "get_timer_status", "timer", ...BUILT_IN]);
    expect(client.serverInfo).toEqual({ name: "egg-timer", title: "egg-timer", version: "2.0.0" });
    expect(client.instructions).toContain("set_timer");
    expect(JSON.stringify([tools, client.instructions])).not.toMatch(/weather|gathering/i);
  });

  test("passes the doctor", async () => {
    const health = stack.workers[0]?.process.healthUrl ?? "";
    const args = ["doctor", "--url", new URL(stack.url).origin, "--worker-url", health, "--json"];
    const doctor = run("cli/main.ts", { args, env: { RESONATE_URL: "", RESONATE_TOKEN: "" } });
    const { exitCode } = await doctor.exited;
    const { healthy, findings } = JSON.parse(doctor.output());
    expect([exitCode, healthy], doctor.output()).toEqual([0, true]);
    expect(findings).toContainEqual(expect.objectContaining({ check: "one-second timer", status: "ok" }));
  });

  test.for(["2025-11-25", "2026-07-28"])(
    "passes the conformance suite of revision %s, except for scenarios that call the suite's own tools",
    async (revision) => {
      const folder = await mkdtemp(join(tmpdir(), "conformance-"));
      try {
        // The list is exact: an unlisted failure fails the run, and so does a listed check that passes.
        const notApplicable = await readFile("test/conformance/not-applicable.yml", "utf8");
        const lacking = await readFile("test/package/timer/without-fixtures.yml", "utf8");
        const expected = join(folder, "expected.yml");
        await writeFile(expected, notApplicable + lacking.replace(/^(#.*\n|server:\n)*/, ""));
        const args = ["--suite", "all", "--spec-version", revision, "--expected-failures", expected, "-o", folder];
        const options = { preferLocal: true, reject: false } as const;
        const { exitCode, stdout } = await execa("conformance", ["server", "--url", stack.url, ...args], options);
        expect(exitCode, stdout.slice(stdout.indexOf("=== SUMMARY ==="))).toBe(0);
      } finally {
        await rm(folder, { recursive: true, force: true });
      }
    },
  );
});

describe("a server with tools of unusual names and types", () => {
  let stack: TestStack;
  let client: McpClient;
  beforeAll(async () => {
    stack = await startStack({ edge: "test/package/brewery/edge.ts", worker: "test/package/brewery/worker.ts" });
    client = await currentClient.connect(stack.url);
  });
  afterAll(async () => {
    await client?.close();
    await stack?.[Symbol.asyncDispose]();
  });

  test("lists them as they are written", async () => {
    const tools = await client.listTools();
    expect(tools.map(({ name }) => name)).toEqual(["STRENGTH", "Brew.Ale-2", "order.ale", "tap_keg", ...BUILT_IN]);
    expect(tools[1]).toMatchObject({
      title: "Brauen",
      inputSchema: {
        required: ["style", "malts"],
        properties: { style: { enum: ["pils", "stout"] }, malts: { minItems: 1 }, "dry hopped": { type: "boolean" } },
      },
      outputSchema: { properties: { result: { required: ["litres", "steps", "remark"] } } },
    });
    expect(client.instructions).toMatch(/^Brew responsibly\.\n/);
    expect(client.instructions).toContain("order.ale return");
  });

  test.each([
    [
      "would be over before it began",
      { by: "2020-01-01T00:00:00Z" },
      /the deadline of this tap_keg would be -\d+ ms from now/,
    ],
    [
      "has too long a name",
      { occasion: "x".repeat(600) },
      /make a name of 608 characters, up to 500 are possible: shorten them/,
    ],
    ["has no id", { occasion: "none" }, /tap_keg: its id is undefined, neither a text nor a number/],
  ])("a job that %s is not started, and says why", async (_what, given, words) => {
    const { isError, text } = await client.callTool("tap_keg", {
      occasion: "May",
      by: "2099-05-01T00:00:00Z",
      ...given,
    });
    expect(isError).toBe(true);
    expect(text).toMatch(/^Nothing was done: /);
    expect(text).toMatch(words);
  });

  test("computes, refuses invalid arguments with a message, and completes a job despite a crash", async () => {
    expect((await client.callTool("STRENGTH", { plato: [12, 2.5] })).content).toEqual({ percent: 5 });
    const refused = await client.callTool("Brew.Ale-2", { style: "ale", malts: [] });
    expect([refused.isError, refused.text]).toEqual([true, expect.stringMatching(/style.*pils.*malts/s)]);

    const malts = [
      { name: "Pale", kilograms: 4 },
      { name: "Munich: ~2", kilograms: 0.5 },
    ];
    const brewing = client.callTool("Brew.Ale-2", { style: "pils", malts, "dry hopped": true });
    const batch = await stack.waitForJob("Sud.pils ");
    await stack.clock.advance(HOUR);
    await stack.workers[0]?.kill();
    await stack.workers[0]?.start();
    await stack.clock.advance(24 * HOUR);
    expect((await brewing).content).toMatchObject({
      job_name: batch,
      status: "complete",
      result: {
        litres: 22.5,
        steps: [
          ["Pale", 64],
          ["Munich: ~2", 60.5],
        ],
        remark: "hoppy",
      },
    });
  });

  test("can have several tools on one job", async () => {
    const ordered = async () => (await client.callTool("order.ale", { malt: "Roast" })).content;
    const { batch, first } = await ordered();
    expect(first).toBe(true);
    await stack.clock.advance(25 * HOUR);
    expect(await ordered()).toEqual({ batch, first: false });
    const malts = [{ name: "Roast", kilograms: 5 }];
    const { content } = await client.callTool("Brew.Ale-2", { style: "stout", malts });
    expect(content).toMatchObject({ job_name: batch, status: "complete", result: { litres: 25, remark: null } });
  });
});
