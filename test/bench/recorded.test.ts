import { expect, test } from "vitest";
import { exactly, figure } from "./figures.ts";
import { addedSubrequests, fallenRatios } from "./recorded.ts";
import type { Pair } from "./requests.ts";

/** Measurements whose ratios, of the product's rate to the floor's, come from `next`; five rounds are made already. */
function measurements(next: () => number) {
  const run = (rate: number) => ({ rate, p50: 1, p99: 1, cpu: { edge: 1, generator: 1, server: 1 } });
  const operation = { name: "tools/list", message: { method: "tools/list" }, expect: "", calls: [], revisions: [] };
  const pair: Pair = { operation, revision: "2026-07-28", product: [], floor: [] };
  const measure = async (rounds: number) => {
    for (let i = 0; i < rounds; i++) {
      pair.product.push(run(1_000 * next()));
      pair.floor.push(run(1_000));
    }
  };
  return { pairs: [pair], measure };
}

/** What is found of ratios that come as given, again and again, when 0.5 is recorded. */
async function found(...ratios: number[]): Promise<string[]> {
  let i = 0;
  const requests = measurements(() => ratios[i++ % ratios.length] ?? Number.NaN);
  await requests.measure(5);
  const recorded = { ratios: [{ operation: "tools/list", revision: "2026-07-28", ratio: 0.5 }] };
  return fallenRatios(recorded, requests, () => {});
}

test("a ratio that has fallen by more than a tenth is reported with what it was", async () => {
  expect(await found(0.4, 0.42, 0.38)).toEqual([
    "tools/list (2026-07-28): 0.400 of the floor's throughput, recorded 0.5",
  ]);
});

test("a fall that single rounds hide is still found", async () => {
  expect(await found(0.4, 0.42, 0.38, 0.41, 0.6)).toHaveLength(1);
});

test("a ratio as it was, somewhat worse or better is none", async () => {
  expect(await found(0.5)).toEqual([]);
  expect(await found(0.46)).toEqual([]);
  expect(await found(0.9)).toEqual([]);
});

test("a disturbance of the first rounds is outvoted by those that follow", async () => {
  expect(await found(0.2, 0.2, 0.2, 0.3, 0.3, ...Array.from({ length: 20 }, () => 0.5))).toEqual([]);
});

test("noise about the limit is none", async () => {
  expect(await found(0.3, 0.6, 0.4, 0.7, 0.35)).toEqual([]);
});

test("one subrequest more than recorded is reported, as many or fewer are not", () => {
  const recorded = { subrequests: { "subrequests: tasks/get": 1 } };
  const measured = (count: number) => [figure("subrequests: tasks/get", "", exactly(count))];
  expect(addedSubrequests(recorded, measured(2))).toEqual(["subrequests: tasks/get: 2, recorded 1"]);
  expect(addedSubrequests(recorded, measured(1))).toEqual([]);
  expect(addedSubrequests(recorded, measured(0))).toEqual([]);
});
