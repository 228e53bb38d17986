/** Saved histories of real jobs check that today's code still fits their journals. */
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { execa } from "execa";
import { expect, test } from "vitest";
import * as z from "zod";
import { type Context, implement } from "../../core/index.ts";
import { orderRun } from "../../docs/examples/order/order.run.ts";
import { order } from "../../docs/examples/order/order.ts";
import { replayHistories, startStack, startUpstream } from "../../testing/index.ts";
import { until } from "../../testing/simulation/program.ts";
import { freePort } from "../../testing/stack/port.ts";

test("the code replays a job's history without effects, and changed code fails with the place where it differs", async () => {
  await using shop = await startUpstream();
  shop.answers({ body: {} });
  const resonate = await freePort();
  const programs = { edge: "docs/examples/edge.ts", worker: "docs/examples/worker.ts" };
  await using stack = await startStack({ ...programs, ports: { resonate }, env: { SERVICES_URL: shop.url } });
  const folder = await mkdtemp(join(tmpdir(), "histories-"));
  const ordered = [1, 2].map((number) => stack.call("take_order", { number }));
  await shop.waitForRequests(2);
  await stack.job("take_order_1").callback("payment").send({ amount: 12, card: "4111" });
  await ordered[0];
  const env = { RESONATE_URL: `http://127.0.0.1:${resonate}`, RESONATE_TOKEN: "", RESONATE_NAMESPACE: "" };
  const save = (...args: string[]) => execa(process.execPath, ["cli/main.ts", "histories", "save", ...args], { env });
  // The shop may have been asked for the second order before its step was recorded.
  await until("the second order's record", async () => {
    const { stdout } = await save("take_order_1", "take_order_2", "--to", folder, "--redact", "card");
    return stdout.includes("take_order_2.json: 1 records");
  });
  const saved = await readFile(join(folder, "take_order_1.json"), "utf8");
  const clear = saved.replace(/"data": "([^"]+)"/g, (_, data) => atob(data));
  expect(clear).toContain("redacted");
  expect(clear).not.toContain("4111");

  expect(await replayHistories(folder, [orderRun])).toBe(2);
  expect(shop.requests).toHaveLength(2);

  shop.answers({ status: 404, body: {} });
  await expect(stack.call("take_order", { number: 3 })).rejects.toThrow("404");
  const lost = join(folder, "lost");
  await save("take_order_3", "take_order_2", "--to", lost);
  const endOf = async (name: string) => JSON.parse(await readFile(join(lost, `${name}.json`), "utf8"));
  expect(await endOf("take_order_2")).toMatchObject({ state: "pending" });
  expect(await endOf("take_order_3")).toMatchObject({
    state: "rejected",
    end: { error: { message: expect.stringContaining("404") } },
  });
  expect(await replayHistories(lost, [orderRun])).toBe(2);
  const free = implement(order, async (ctx, { number }) => {
    await ctx.step("order", () => null).catch(() => null);
    return { number, paid: 0 };
  });
  await expect(replayHistories(lost, [free])).rejects.toThrow(
    /^\S+take_order_3\.json: it returns {"number":3,"paid":0}, and failed: .*404.*$/,
  );
  await save("take_order_3", "--to", lost, "--redact", "card");
  expect(await endOf("take_order_3")).toMatchObject({ state: "rejected", end: { error: {} } });

  const changed = (code: (ctx: Context, args: { number: number }) => Promise<{ number: number; paid: number }>) =>
    replayHistories(folder, [implement(order, code)]);
  const payment = (ctx: Context) => ctx.callback("payment", { schema: z.object({ amount: z.number() }) }).result;
  const renamed = changed(async (ctx, { number }) => {
    await ctx.step("submit", () => null);
    return { number, paid: (await payment(ctx)).amount };
  });
  await expect(renamed).rejects.toThrow(
    /take_order_1\.json: step "order" was recorded here, "submit" came\n.*take_order_2/,
  );
  const other = changed(async (ctx, { number }) => {
    await ctx.step("order", () => null);
    return { number, paid: 2 * (await payment(ctx)).amount };
  });
  await expect(other).rejects.toThrow('it returns {"number":1,"paid":24}, and returned {"number":1,"paid":12}');
  await expect(replayHistories(folder, [])).rejects.toThrow("holds no history of these functions");
  await rm(folder, { recursive: true });
});
