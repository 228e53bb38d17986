import { type Figure, figure, spreadOf } from "../report/figures.ts";
import { type Bench, inParallel } from "../setup/bench.ts";

/** The highest request rate of the load generator, to show that it does not limit the other measurements. */
export async function measureCeiling(bench: Bench, rounds: number): Promise<Figure[]> {
  await using empty = await bench.serve("empty");
  const load = { url: empty.url, headers: { "content-type": "application/json" }, body: "{}", expect: "ok" };
  const runs = await inParallel(Array.from({ length: rounds }), 1, () =>
    bench.generator.run({ ...load, connections: 16, seconds: 0.5 }),
  );
  const each = ({ cpu, requests }: { cpu: number; requests: number }) => (cpu / requests) * 1e6;
  return [
    figure(
      "load generator against an empty Worker",
      "a second",
      spreadOf(runs.map((run) => run.requests / run.seconds)),
    ),
    figure("CPU time a request, load generator", "µs", spreadOf(runs.map(each))),
  ];
}
