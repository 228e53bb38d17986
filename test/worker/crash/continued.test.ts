/** A job of several runs under one name, whose worker is killed and which is cancelled. */
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { execa } from "execa";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Context, implement } from "../../../core/index.ts";
import { replayHistories } from "../../../testing/index.ts";
import { until } from "../../../testing/stack/program.ts";
import { currentClient, type McpClient } from "../../support/clients.ts";
import { type Stack, startStack } from "../../support/stack.ts";
import { patrolRun } from "../scripts/continued/continued-run.ts";
import { patrol } from "../scripts/continued/continued.ts";

let stack: Stack;
let client: McpClient;
let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "continued-"));
  stack = await startStack({
    programs: {
      edge: "test/worker/scripts/continued/continued-edge.ts",
      worker: "test/worker/scripts/continued/continued-worker.ts",
    },
    env: { FOLDER: folder, LEASE_SECONDS: "2" },
  });
  client = await currentClient.connect(stack.url);
});
afterAll(async () => {
  await client?.close();
  await stack?.[Symbol.asyncDispose]();
  await rm(folder, { recursive: true, force: true });
});

const walked = async (of: string) => (await readFile(join(folder, of), "utf8").catch(() => "")).trim().split("\n");
const probe = async (job: string) => {
  const { content } = await client.callTool("probe_status", { job_names: [job], partial_from: 0 });
  return content.statuses[0];
};
const rounds = (n: number) => Array.from({ length: n }, (_, i) => i + 1);

test("each run does its work once even when the worker is killed, and one call waits for all runs", async () => {
  const result = client.callTool("patrol", { of: "tower", round: 1, last: 8, ms: 300 });
  await until("a third round", async () => (await walked("tower")).includes("3"));
  await stack.workers[0]?.kill();
  await stack.workers[0]?.start();
  expect(await result).toMatchObject({ content: { result: { rounds: 8, spent: 40 } } });
  expect(await walked("tower")).toEqual(rounds(8).map(String));
  expect(await probe("patrol_tower")).toMatchObject({
    status: "complete",
    partial: { values: rounds(8).map((round) => ({ round })) },
  });
});

test("a cancellation reaches the current run, whose clean-up runs, and the next generation begins at the first run", async () => {
  const args = { of: "wall", round: 1, last: 12, ms: 20 };
  const begun = client.callTool("patrol", args);
  const shown = await until("the 12th run", async () => {
    const status = await probe("patrol_wall");
    return status?.run === 12 && status.doing.startsWith("run 12; 12 of 12") ? status : undefined;
  });
  expect(shown.status).toBe("running");
  await client.callTool("cancel_job", { job_names: ["patrol_wall"] });
  await begun;
  await until("its clean-up", async () => (await probe("patrol_wall"))?.cleanup === "done");
  expect(await walked("wall")).toEqual([...rounds(12).map(String), "home after 12"]);
  const again = client.callTool("patrol", { ...args, last: 2 });
  expect(await again).toMatchObject({ content: { job_name: "patrol_wall~2", result: { rounds: 2 } } });
});

test("a generation that resumes continues in the run that failed and does not repeat its finished steps", async () => {
  const args = { of: "bank", round: 1, last: 4, ms: 10 };
  await writeFile(join(folder, "flood"), "");
  expect((await client.callTool("patrol", args)).text).toContain("the bridge is down");
  await rm(join(folder, "flood"));
  const { content } = await client.callTool("patrol", args);
  expect(content).toMatchObject({ job_name: "patrol_bank~2", resumed_from: "patrol_bank", result: { rounds: 4 } });
  expect(await walked("bank")).toEqual(rounds(4).map(String));
});

test("a generation that resumed in a later run cleans up with the arguments of that run", async () => {
  const args = { of: "dam", round: 11, last: 12, ms: 10 };
  await writeFile(join(folder, "flood"), "");
  expect((await client.callTool("patrol", args)).text).toContain("the bridge is down");
  await rm(join(folder, "flood"));
  const again = client.callTool("patrol", args);
  await until("its rest", async () => (await probe("patrol_dam~2"))?.doing?.includes("12 of 12"));
  await client.callTool("cancel_job", { job_names: ["patrol_dam~2"] });
  await again;
  await until("its clean-up", async () => (await probe("patrol_dam~2"))?.cleanup !== "running");
  expect(await probe("patrol_dam~2")).toMatchObject({ status: "cancelled", cleanup: "done" });
  expect(await walked("dam")).toEqual(["11", "12", "home after 12"]);
});

test("invalid arguments for the next run fail the job with an error that names them", async () => {
  const { isError, text } = await client.callTool("patrol", { of: "moat", round: 1, last: 2, ms: 1 });
  expect([isError, text]).toEqual([
    true,
    expect.stringMatching(/continueAs: these are not arguments of patrol: round/),
  ]);
});

test("the history of every run of a job is saved, and today's code replays each of them", async () => {
  const { resonate, namespace } = stack;
  const env = { ...resonate.env, RESONATE_NAMESPACE: namespace };
  const to = join(folder, "histories");
  const jobs = ["patrol_tower", "patrol_wall", "patrol_bank~2"];
  await execa(process.execPath, ["cli/main.ts", "histories", "save", ...jobs, "--to", to], { env });
  // 8 runs of the tower, 12 of the wall, and 2 of the bank's second generation, which resumed in the third round.
  expect(await replayHistories(to, [patrolRun])).toBe(22);
  const saved = async (of: string) => JSON.parse(await readFile(join(to, `patrol_${of}.json`), "utf8"));
  expect(await saved("tower")).toMatchObject({ args: { round: 8 }, end: { value: { rounds: 8 } } });
  expect(await saved("tower.run-1")).toMatchObject({ args: { round: 1 }, end: { next: { round: 2 } } });
  expect(await saved("bank~2.run-1")).toMatchObject({ args: { round: 3 }, end: { next: { round: 4 } } });
  const changed = implement(patrol, async (ctx: Context, { round }) => {
    await ctx.step("walk", () => null);
    await ctx.step("swim", () => null);
    return { rounds: round, spent: 0 };
  });
  const told = ["tower.json", "tower.run-1.json", "wall.json", "wall.run-11.json"].map(
    (file) => `patrol_${file}: step "cross" was recorded here, "swim" came\n`,
  );
  await expect(replayHistories(to, [changed])).rejects.toSatisfy(({ message }: Error) =>
    told.every((each) => message.includes(each)),
  );
  const twice = implement(patrol, async (ctx, { round, ...args }) => {
    for (const step of ["walk", "cross"]) await ctx.step(step, () => null);
    await ctx.emit({ round });
    ctx.progress(round, args.last);
    await ctx.spend(5, { of: "steps" });
    await ctx.sleep("a rest", args.ms);
    return ctx.continueAs({ ...args, round: round + 2 });
  });
  const [present, past] = [3, 2].map((round) => JSON.stringify({ of: "tower", round, last: 8, ms: 300 }));
  await expect(replayHistories(to, [twice])).rejects.toThrow(
    `patrol_tower.run-1.json: it continues with ${present}, and continued with ${past}`,
  );
});
