import { afterEach, expect, test, vi } from "vitest";
import { childOf, decodeValue, encodeValue, getOf } from "../../core/resonate/codec.ts";
import { ResonateClient } from "../../core/resonate/connection/client.ts";
import { Sealing } from "../../core/resonate/sealing.ts";
import type { Visit } from "../../core/tools/route.ts";
import { Seal } from "../../functions/auth/seal.ts";
import { RefusedTries } from "../../functions/http/refused-tries.ts";
import { Simulation } from "../../testing/simulation/simulation.ts";
import { callbackUrls } from "./callback-urls.ts";
import { receive } from "./receive.ts";

afterEach(() => void vi.unstubAllGlobals());

const VIEW_KEY = "v".repeat(32);
const ID = "order_1:p1";

/** A running job, and a request to one of its callbacks. */
async function stack() {
  const sim = new Simulation({ now: () => Date.now() });
  vi.stubGlobal("fetch", async (_url: string, init: RequestInit) => {
    const { kind, data } = JSON.parse(String(init.body));
    const { status, data: answer } = await sim.send(kind, data);
    return Response.json({ kind, head: { status }, data: answer });
  });
  const client = new ResonateClient({ url: "http://resonate", codec: new Sealing() });
  const timeoutAt = Date.now() + 60_000;
  const param = encodeValue({ func: "order", args: [], version: 1, seed: "second" });
  await client.call({ kind: "promise.create", data: { id: "order_1", timeoutAt, param, tags: {} } });
  const urlOf = callbackUrls({ PUBLIC_URL: "https://tools.example", VIEW_KEY });
  const send = async (seed: string, body = "paid", type = "text/plain") => {
    const url = urlOf?.(ID, seed, timeoutAt) ?? "";
    const raw = new Request(url, { method: "POST", body, headers: { "content-type": type } });
    const visit = { req: { raw, param: () => new URL(url).pathname.split("/").at(-1) } } as unknown as Visit;
    const options = { client, seal: new Seal(VIEW_KEY), tries: new RefusedTries(), limit: undefined };
    return receive(visit, options);
  };
  return { client, timeoutAt, send };
}

test("an address that an earlier job of the same name has given away does not settle a later one", async () => {
  const { send } = await stack();
  expect((await send("first")).status).toBe(410);
  expect((await send("second")).status).toBe(200);
  expect((await send("second")).status).toBe(409);
});

test("an integer keeps its digits where the schema says nothing about it, and is refused where it asks for a number", async () => {
  const { client, timeoutAt, send } = await stack();
  const body = '{"id":725653563933458433,"n":1}';
  const schema = { type: "object", properties: { n: { type: "number" } }, required: ["n"] };
  await client.call(childOf(ID, timeoutAt, { param: { callback: "p1", schema } }));
  const wrong = await send("second", '{"n":725653563933458433}', "application/json");
  expect([wrong.status, await wrong.text()]).toEqual([422, expect.stringMatching(/725653563933458433.*at n/)]);
  expect((await send("second", '{"n":1e400}', "application/json")).status).toBe(400);
  expect((await send("second", body, "application/json")).status).toBe(200);
  const promise = await client.call(getOf(ID));
  expect(promise && decodeValue(promise.value)).toBe(body);
});
