/** Saved histories of real jobs check that today's code still fits their journals. */
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { execa } from "execa";
import { afterAll, beforeAll, expect, test } from "vitest";
import * as z from "zod";
import { type Context, implement } from "../../core/index.ts";
import { orderRun } from "../../docs/examples/order/order.run.ts";
import { order } from "../../docs/examples/order/order.ts";
import { replayHistories, startStack, startUpstream, type TestStack, type Upstream } from "../../testing/index.ts";
import { freePort } from "../../testing/stack/port.ts";
import { until } from "../../testing/stack/program.ts";

let shop: Upstream;
let stack: TestStack;
let folder: string;
let env: Record<string, string>;
beforeAll(async () => {
  shop = await startUpstream();
  const resonate = await freePort();
  const programs = { edge: "docs/examples/edge.ts", worker: "docs/examples/worker.ts" };
  stack = await startStack({ ...programs, ports: { resonate }, env: { SERVICES_URL: shop.url } });
  folder = await mkdtemp(join(tmpdir(), "histories-"));
  env = { RESONATE_URL: `http://127.0.0.1:${resonate}`, RESONATE_TOKEN: "", RESONATE_NAMESPACE: "" };
});
afterAll(async () => {
  await stack?.[Symbol.asyncDispose]();
  await shop?.[Symbol.asyncDispose]();
  await rm(folder, { recursive: true });
});

const save = (...args: string[]) => execa(process.execPath, ["cli/main.ts", "histories", "save", ...args], { env });

test("the code replays a job's history without effects, and redacted values are in no file", async () => {
  shop.answers({ body: {} });
  const orders = [1, 2].map((number) => stack.call("take_order", { number }));
  // The shop is asked before the steps are recorded, and the payment must come after that: the order of the two is in the history.
  await until("the records of both steps", async () => {
    const { stdout } = await save("take_order_1", "take_order_2", "--to", folder);
    return /take_order_1\.json: 1 records\n.*take_order_2\.json: 1 records/.test(stdout);
  });
  await stack.job("take_order_1").callback("payment").send({ amount: 12, card: "4111" });
  await orders[0];
  await save("take_order_1", "take_order_2", "--to", folder, "--redact", "card");
  const file = await readFile(join(folder, "take_order_1.json"), "utf8");
  const text = file.replace(/"data": "([^"]+)"/g, (_, data) => atob(data));
  expect(text).toContain("redacted");
  expect(text).not.toContain("4111");
  expect(await replayHistories(folder, [orderRun])).toBe(2);
  expect(shop.requests).toHaveLength(2);
});

test("the histories of a failed job and of one that runs are replayed, and code that does not fail is reported", async () => {
  shop.answers({ status: 404, body: {} });
  await expect(stack.call("take_order", { number: 3 })).rejects.toThrow("404");
  const failures = join(folder, "failures");
  await save("take_order_3", "take_order_2", "--to", failures);
  const endOf = async (name: string) => JSON.parse(await readFile(join(failures, `${name}.json`), "utf8"));
  expect(await endOf("take_order_2")).toMatchObject({ state: "pending" });
  expect(await endOf("take_order_3")).toMatchObject({
    state: "rejected",
    end: { error: { message: expect.stringContaining("404") } },
  });
  expect(await replayHistories(failures, [orderRun])).toBe(2);
  const free = implement(order, async (ctx, { number }) => {
    await ctx.step("order", () => null).catch(() => null);
    return { number, paid: 0 };
  });
  await expect(replayHistories(failures, [free])).rejects.toThrow(
    /^\S+take_order_3\.json: it returns {"number":3,"paid":0}, and failed: .*404.*$/,
  );
  await save("take_order_3", "--to", failures, "--redact", "card");
  expect(await endOf("take_order_3")).toMatchObject({ state: "rejected", end: { error: {} } });
});

test("changed code fails with the place where it differs", async () => {
  const replay = (code: (ctx: Context, args: { number: number }) => Promise<{ number: number; paid: number }>) =>
    replayHistories(folder, [implement(order, code)]);
  const payment = (ctx: Context) => ctx.callback("payment", { schema: z.object({ amount: z.number() }) }).result;
  const withOtherName = replay(async (ctx, { number }) => {
    await ctx.step("submit", () => null);
    return { number, paid: (await payment(ctx)).amount };
  });
  await expect(withOtherName).rejects.toThrow(
    /take_order_1\.json: step "order" was recorded here, "submit" came\n.*take_order_2/,
  );
  const withOtherResult = replay(async (ctx, { number }) => {
    await ctx.step("order", () => null);
    return { number, paid: 2 * (await payment(ctx)).amount };
  });
  await expect(withOtherResult).rejects.toThrow(
    'it returns {"number":1,"paid":24}, and returned {"number":1,"paid":12}',
  );
  await expect(replayHistories(folder, [])).rejects.toThrow("holds no history of these functions");
});
