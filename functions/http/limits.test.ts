import { expect, test } from "vitest";
import type { RemoteStore } from "../../core/jobs/index.ts";
import { Meter, type RateLimit } from "./limits.ts";

test("a request pays its weight before the work, and what the work has taken beyond it afterwards", async () => {
  const charged: number[] = [];
  const limit: RateLimit = async (_key, { weight }) => void charged.push(weight);
  const meter = new Meter(limit, "ada", 1);
  expect(await meter.check({ weight: 4 })).toBeUndefined();
  const made = (calls: number) => ({ store: { calls } as RemoteStore });
  await meter.charge(made(12));
  meter.renew(made(60));
  meter.release(made(115));
  expect(charged).toEqual([3, 16, 19]);
});

test("a request is refused before the work if its weight is too much", async () => {
  const meter = new Meter(async () => ({ message: "too much", seconds: 7 }), "ada", 0);
  const refusal = await meter.check({ weight: 4 });
  expect([refusal?.status, refusal?.headers.get("retry-after")]).toEqual([429, "7"]);
});
