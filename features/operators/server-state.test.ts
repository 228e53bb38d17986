/** Counts of a server since it woke are added up by days; rules judge the use of a plan and of a storage. */
import { expect, test } from "vitest";
import type { Charges, ServerState } from "../../core/jobs/operators-api.ts";
import { RULES } from "./alerts.ts";
import { addCharges, type Charged } from "./server-state.ts";

const DAY = 86_400_000;
const NOON = Date.UTC(2026, 10, 20, 12);
const told = (n: number, awake = n * 1_000): Charges => ({ requests: n, read: 2 * n, written: 3 * n, awake });

test("charges count for their day, even if the server has slept in between", () => {
  const looks: [at: number, told: Charges][] = [
    [NOON, told(10)],
    [NOON + 1, told(15)],
    [NOON + 2, told(4)], // It has slept, and woke again.
    [NOON + DAY, told(6)],
  ];
  let charged: Charged | undefined;
  for (const [at, each] of looks) charged = addCharges(charged, each, at);
  expect(charged).toMatchObject({ today: told(2), yesterday: told(19) });
  expect(addCharges(charged, told(7), NOON + 3 * DAY)).toMatchObject({ today: told(1), yesterday: undefined });
});

const seen = (resonate: Partial<ServerState>, isFree = true) =>
  ({ resonate: { ms: 1, release: "account", ...resonate }, isFree }) as never;

test.each([
  [{ size: 8.9e9, maxBytes: 10e9 }, undefined],
  [{ size: 9.1e9, maxBytes: 10e9 }, "the Resonate server has stored 9.1 GB of 10.0 GB"],
  [{ size: 9.1e9 }, undefined],
  [{}, undefined],
])("the rule for a storage of %o", (resonate, says) => expect(RULES["server-full"](seen(resonate))).toBe(says));

test("the free plan's day is nearly used by rows or by requests, and the paid plan has no limit", () => {
  const rule = RULES["plan-used"];
  const of = (written: number, requests: number) => ({ today: { ...told(0), written, requests } });
  expect(rule(seen(of(69_000, 69_000)))).toBeUndefined();
  expect(rule(seen(of(71_000, 100)))).toBe("71 % of the free plan's day are used");
  expect(rule(seen(of(100, 90_000)))).toBe("90 % of the free plan's day are used");
  expect(rule(seen(of(71_000, 100), false))).toBeUndefined();
});
