import { afterAll, beforeAll, expect, test } from "vitest";
import { orderRun } from "../../docs/examples/order/order.run.ts";
import { replay } from "../../testing/replay.ts";
import { JOB_NAME, SimulatedJob } from "../../testing/simulation/simulated-job.ts";
import { type HttpServer, serveHttp } from "../../testing/stack/http-server.ts";
import { callbackOf } from "../engine/guard/seeded.ts";
import { type Context, HOUR } from "./context.ts";

const posted: { path: string; key: string; body: string }[] = [];
const env = { SERVICES_URL: "" };
let shop: HttpServer;
beforeAll(async () => {
  shop = await serveHttp(async (request, response) => {
    let body = "";
    for await (const part of request) body += part;
    posted.push({ path: request.url ?? "", key: String(request.headers["idempotency-key"]), body });
    response.end("{}");
  });
  env.SERVICES_URL = shop.url;
});
afterAll(() => shop?.[Symbol.asyncDispose]());

test("an order is paid by a call from outside, wherever the worker dies", async () => {
  const { result, runs } = await replay(orderRun, { number: 7 }, { env, callbacks: { payment: { amount: 12 } } });
  expect(result).toEqual({ number: 7, paid: 12 });
  expect(runs).toBeGreaterThan(15);
  // All runs hand the same address to the shop, under one key.
  expect(new Set(posted.map((each) => JSON.stringify(each))).size).toBe(1);
});

test("an order that nobody pays times out", async () => {
  await expect(replay(orderRun, { number: 8 }, { env })).rejects.toThrow(
    'nothing was sent to the callback "payment" in time',
  );
});

test("a value sent before the job waits is kept, and callbacks side by side have different addresses", async () => {
  const urls = new Set<string>();
  const both = async (ctx: Context) => {
    const [a, b] = [ctx.callback<number>("a"), ctx.callback<number>("b")];
    await ctx.step("tell", () => void urls.add(a.url).add(b.url));
    await ctx.sleep("an hour", HOUR);
    const first = await ctx.race({ a: () => a.result, late: (c) => c.sleep("late", HOUR) });
    return [first.winner, await b.result];
  };
  const job = new SimulatedJob(both as never);
  await job.execute();
  await job.send("a", 1);
  job.forget();
  await job.next();
  await job.send("b", [2]);
  expect(await job.toEnd()).toEqual({ kind: "complete", value: ["a", [2]] });
  expect(urls.size).toBe(2);
});

test.each([
  ["an object", { amount: 12 }, { amount: 12 }],
  ["a text that is no JSON", "paid", "paid"],
  ["JSON as text, as from the address", '{"amount":12}', { amount: 12 }],
  ["nothing", undefined, null],
])(
  "a callback that is settled at the Resonate server itself, with %s, has that value",
  async (_what, value, expected) => {
    const job = new SimulatedJob((async (ctx: Context) => [await ctx.callback("paid").result]) as never);
    await job.execute();
    job.sim.settle(callbackOf(JOB_NAME, "paid"), "resolved", value);
    expect(await job.toEnd()).toEqual({ kind: "complete", value: [expected] });
  },
);

test("a sent value that does not fit the schema is an error", async () => {
  const wrong = replay(orderRun, { number: 9 }, { env, callbacks: { payment: { amount: "much" } } });
  await expect(wrong).rejects.toThrow('what was sent to the callback "payment" does not fit: amount');
});
