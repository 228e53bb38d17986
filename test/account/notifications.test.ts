/** Notifications within one account, without open connections: the Resonate object calls the callers' objects. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { startEdge } from "../../cli/launcher/local-edge.ts";
import { until } from "../../testing/stack/program.ts";
import { startSampleArchive } from "../../tools/weather/sample-archive/server.ts";
import { bearerBindings, callerAt } from "../auth/support.ts";
import { newSecret, startReceiver } from "../events/receiver.ts";
import { eventsAt } from "../events/support.ts";

const TOKENS = {
  ada: "static-token-of-ada",
  bob: "static-token-of-bob",
  eve: "static-token-of-eve",
  fay: "static-token-of-fay",
};
/** How long a test waits, in milliseconds: shorter than a caller object's own interval to look for ends. */
const SOON = 25_000;

let url: string;
const cleanup = new AsyncDisposableStack();
beforeAll(async () => {
  const archive = cleanup.use(await startSampleArchive());
  const bindings = { ...bearerBindings(TOKENS), ALLOW_LOOPBACK_CALLBACKS: "1", WEATHER_API_URL: archive.url };
  const entry = "test/account/fixture/account-edge.ts";
  const edge = cleanup.use(await startEdge({ port: 0, entry, bindings }));
  url = `${edge.url}/mcp`;
});
afterAll(() => cleanup.disposeAsync());

test("each caller who started a job, and no other, gets its end at once, even if it was cancelled", async () => {
  await using all = new AsyncDisposableStack();
  const subscribed = async (token: string) => {
    const [client, receiver] = [all.use(await eventsAt(url, token)), all.use(await startReceiver(newSecret()))];
    const delivery = { url: receiver.url, secret: receiver.secret };
    await client.request("events/subscribe", { name: "job.ended", delivery });
    const told = () => receiver.delivered.map(({ id, body }) => [id, body.data.status]).sort();
    return { start: client.start, told };
  };
  const [ada, bob, eve] = await Promise.all([TOKENS.ada, TOKENS.bob, TOKENS.eve].map(subscribed));
  if (!ada || !bob || !eve) throw new Error("three callers");
  const place = { latitude: 47.6062, longitude: -122.3321, year: 2014, month: 7 };
  await Promise.all([ada.start("start_gathering", place), bob.start("start_gathering", place)]);
  await eve.start("set_timer", { timer_name: "mine", seconds: 1 });
  await eve.start("set_timer", { timer_name: "long", seconds: 3_600 });
  await eve.start("cancel_job", { job_names: ["timer_long"] });
  await until("the ends", () => ada.told().length > 0 && bob.told().length > 0 && eve.told().length > 1, SOON);
  const month = ["ended_weather_data_47%2e6062_-122%2e3321_2014_7", "complete"];
  expect([ada.told(), bob.told(), eve.told()]).toEqual([
    [month],
    [month],
    [
      ["ended_timer_long", "cancelled"],
      ["ended_timer_mine", "complete"],
    ],
  ]);
});

test("a job that a durable function starts is only in its caller's list", async () => {
  const [fay, eve] = [callerAt(url, TOKENS.fay), callerAt(url, TOKENS.eve)];
  const listed = async (caller: typeof fay) =>
    (await caller.call("list_jobs")).jobs.map((job: { job_name: string; status: string }) => [
      job.job_name,
      job.status,
    ]);
  expect(await fay.call("parent", { name: "one" })).toMatchObject({ status: "complete" });
  await expect
    .poll(async () => (await listed(fay)).sort(), { timeout: SOON })
    .toEqual([
      ["parent_one", "complete"],
      ["timer_of one", "running"],
    ]);
  expect((await listed(eve)).flat()).not.toContain("timer_of one");
});
