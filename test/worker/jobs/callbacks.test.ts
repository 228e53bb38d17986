/** Callbacks through the real edge and worker: a value that an outside system sends reaches the job that waits for it. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { startStack, startUpstream, type TestStack, type Upstream } from "../../../testing/index.ts";

let shop: Upstream;
let stack: TestStack;
beforeAll(async () => {
  shop = await startUpstream();
  shop.answers({ body: {} });
  const programs = { edge: "docs/examples/edge.ts", worker: "docs/examples/worker.ts" };
  stack = await startStack({ ...programs, env: { SERVICES_URL: shop.url } });
});
afterAll(async () => {
  await stack?.[Symbol.asyncDispose]();
  await shop?.[Symbol.asyncDispose]();
});

/** Starts a job; resolves with its name and the address that the shop was given. */
async function ordered(number: number) {
  const before = shop.requests.length;
  const started = stack.call("take_order", { number });
  started.catch(() => {});
  await expect.poll(() => shop.requests.length, { timeout: 20_000 }).toBeGreaterThan(before);
  const { notify } = JSON.parse(String(shop.requests.at(-1)?.body));
  return { name: `take_order_${number}`, url: String(notify) };
}

const json = { "content-type": "application/json" };
const send = async (url: string, body: string, headers: Record<string, string> = json) => {
  const response = await fetch(url, { method: "POST", headers, body });
  return { status: response.status, body: await response.json() };
};
const resultOf = async (name: string) => {
  const { results } = await stack.call("await_result", { job_names: [name] });
  return results[name];
};

test("the first valid value counts, even while no worker runs, and every other sender gets an error", async () => {
  const { name, url } = await ordered(1);
  expect(url).not.toContain("take_order");
  expect(url).toBe(await stack.job(name).callback("payment").url());
  // The shop is asked before the job waits.
  const look = async () => JSON.stringify(await stack.call("probe_status", { job_names: [name] }));
  await expect.poll(look, { timeout: 20_000 }).toContain("waiting for payment to be called back");
  await stack.workers[0]?.kill();
  expect(await send(url, "{")).toMatchObject({ status: 400 });
  expect(await send(url, '{"amount":"much"}')).toMatchObject({ status: 422, body: { error: /amount/ } });
  expect((await send(url, `"${"x".repeat(100_001)}"`)).status).toBe(413);
  // Such a body would overflow the stack of the edge, or of the job that receives it.
  const deep = await send(url, `${"[".repeat(49_000)}${"]".repeat(49_000)}`);
  expect(deep).toMatchObject({ status: 400, body: { error: "The body is nested more than 100 levels deep." } });
  expect((await send(`${url.slice(0, -3)}AAA`, "{}")).status).toBe(404);
  const sent = await Promise.all([11, 12, 13].map((amount) => send(url, JSON.stringify({ amount }))));
  expect(sent.map(({ status }) => status).sort()).toEqual([200, 409, 409]);
  const first = 11 + sent.findIndex(({ status }) => status === 200);
  await expect(stack.job(name).callback("payment").send({ amount: 14 })).rejects.toThrow("409");
  await stack.workers[0]?.start();
  expect(await resultOf(name)).toEqual({ number: 1, paid: first });
  expect((await send(url, '{"amount":15}')).status).toBe(410);
  // The shop was asked once.
  expect(shop.requests.filter(({ body }) => JSON.parse(String(body)).number === 1)).toHaveLength(1);
});

test("a value that arrives before the job waits for it is kept", async () => {
  await stack.workers[0]?.kill();
  const started = stack.call("take_order", { number: 2 });
  started.catch(() => {});
  const name = await stack.waitForJob("take_order_2");
  await stack.job(name).callback("payment").send({ amount: 2 });
  await expect(stack.job(name).callback("payment").send({ amount: 3 })).rejects.toThrow("409");
  await stack.workers[0]?.start();
  expect(await resultOf(name)).toEqual({ number: 2, paid: 2 });
});

test("a callback expires", async () => {
  const { name, url } = await ordered(3);
  await stack.clock.advance(3 * 86_400_000 + 1_000);
  const { errors } = await stack.call("await_result", { job_names: [name] });
  expect(JSON.stringify(errors)).toContain("nothing was sent to the callback");
  expect((await send(url, '{"amount":3}')).status).toBe(410);
});

test("a worker without PUBLIC_URL fails the job and names the settings it needs", async () => {
  const env = { SERVICES_URL: shop.url, PUBLIC_URL: "" };
  await using other = await startStack({ edge: "docs/examples/edge.ts", worker: "docs/examples/worker.ts", env });
  const refused = other.call("take_order", { number: 4 });
  await expect(refused).rejects.toThrow("set PUBLIC_URL and VIEW_KEY for the worker");
});
