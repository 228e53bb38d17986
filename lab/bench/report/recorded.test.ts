import { expect, test } from "vitest";
import type { Pair } from "../measure/requests.ts";
import { fallenRatios } from "./recorded.ts";

/** Measurements with throughput ratios from `next`, and `cpu` times the floor's CPU time per request. */
function measurements(next: () => number, cpu = 2) {
  const run = (rate: number, edge: number) => ({ rate, p50: 1, p99: 1, cpu: { edge, generator: 1, server: 1 } });
  const operation = { name: "tools/list", message: { method: "tools/list" }, expect: "", calls: [], revisions: [] };
  const pair: Pair = { operation, revision: "2026-07-28", product: [], floor: [] };
  const measure = async (rounds: number) => {
    for (let i = 0; i < rounds; i++) {
      pair.product.push(run(1_000 * next(), cpu));
      pair.floor.push(run(1_000, 1));
    }
  };
  return { pairs: [pair], measure };
}

const RECORDED = {
  ratios: [{ operation: "tools/list", revision: "2026-07-28", throughput: 0.5, "CPU time": 0.5 }],
};

/** The findings for these ratios, in repetition, if 0.5 is recorded. */
async function found(...ratios: number[]): Promise<string[]> {
  let i = 0;
  const requests = measurements(() => ratios[i++ % ratios.length] ?? Number.NaN);
  await requests.measure(5);
  return fallenRatios(RECORDED, requests, () => {});
}

test("a ratio that has fallen by more than a tenth is reported with the recorded ratio", async () => {
  expect(await found(0.4, 0.42, 0.38)).toEqual([
    "tools/list (2026-07-28) by throughput: 0.400 of the floor, recorded 0.5",
  ]);
});

test("a fall is found even if a single round hides it", async () => {
  expect(await found(0.4, 0.42, 0.38, 0.41, 0.6)).toHaveLength(1);
});

test("a request that takes more CPU time is reported even if its throughput has not fallen", async () => {
  const requests = measurements(() => 0.5, 3);
  await requests.measure(5);
  const found = await fallenRatios(RECORDED, requests, () => {});
  expect(found).toEqual(["tools/list (2026-07-28) by CPU time: 0.333 of the floor, recorded 0.5"]);
});

test("an unchanged, slightly worse or better ratio is not reported", async () => {
  expect(await found(0.5)).toEqual([]);
  expect(await found(0.46)).toEqual([]);
  expect(await found(0.9)).toEqual([]);
});

test("the later rounds outvote a disturbance of the first ones", async () => {
  expect(await found(0.2, 0.2, 0.2, 0.3, 0.3, ...Array.from({ length: 20 }, () => 0.5))).toEqual([]);
});

test("noise around the limit is not reported", async () => {
  expect(await found(0.3, 0.6, 0.4, 0.7, 0.35)).toEqual([]);
});
