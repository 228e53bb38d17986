import { afterEach, expect, test, vi } from "vitest";
import { encodeValue } from "../../core/resonate/codec.ts";
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

test("an address that an earlier job of the same name has given away does not settle a later one", async () => {
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
  const send = async (url = "") => {
    const raw = new Request(url, { method: "POST", body: "paid" });
    const visit = { req: { raw, param: () => new URL(url).pathname.split("/").at(-1) } } as unknown as Visit;
    const options = { client, seal: new Seal(VIEW_KEY), tries: new RefusedTries(), limit: undefined };
    return (await receive(visit, options)).status;
  };
  expect(await send(urlOf?.(ID, "first", timeoutAt))).toBe(410);
  expect(await send(urlOf?.(ID, "second", timeoutAt))).toBe(200);
  expect(await send(urlOf?.(ID, "second", timeoutAt))).toBe(409);
});
