/** The cost of `await_result` by the number of jobs, and of its floor: one event stream, and one request per job. */
import { type Figure, figure, spreadOf } from "../report/figures.ts";
import { type Bench, inParallel } from "../setup/bench.ts";
import { callTool, MODERN, mcpRequest, messages, toolCall } from "../setup/mcp.ts";
import { floorRequestOf } from "../setup/operations.ts";

const SIZES = [1, 10, 100] as const;

export async function measureAwait(bench: Bench, rounds: number): Promise<Figure[]> {
  await using edge = await bench.serve("product");
  await using floor = await bench.serve("floor");
  const url = `${edge.url}/mcp`;
  const most = Math.max(...SIZES);
  const numbers = Array.from({ length: most }, (_, n) => n);
  const names = await inParallel(numbers, 16, async (n) => {
    const args = { latitude: 47 + n / 10_000, longitude: -121.9, year: 2013, month: 5 };
    const { job_name } = await callTool(url, "start_gathering", args);
    await bench.complete(job_name);
    return job_name as string;
  });
  const address = "poll://uni@floor/nobody";
  const figures: Figure[] = [];
  for (const size of SIZES) {
    const some = names.slice(0, size);
    const calls = some.map((name) =>
      bench.envelope("promise.register_listener", { awaited: bench.namespace + name, address }),
    );
    const request = mcpRequest(MODERN, toolCall("await_result", { job_names: some }));
    const times: number[] = [];
    const ratios: number[] = [];
    let bytes = 0;
    for (let round = -1; round < rounds; round++) {
      const productTime = await timed(async () => {
        for await (const { result } of messages(url, request)) bytes = JSON.stringify(result).length;
      });
      const floorTime = await timed(async () => {
        const response = await fetch(floor.url, { method: "POST", ...floorRequestOf(calls, { bytes, poll: true }) });
        await response.text();
        if (!response.ok) throw new Error(`the floor answered ${response.status}`);
      });
      if (round < 0) continue; // to warm up
      times.push(productTime);
      ratios.push(floorTime / productTime);
    }
    figures.push(figure(`await_result of ${size} completed job${size === 1 ? "" : "s"}`, "ms", spreadOf(times)));
    figures.push(figure("its speed as a share of the floor's", "", spreadOf(ratios)));
  }
  return figures;
}

async function timed(work: () => Promise<void>): Promise<number> {
  const start = performance.now();
  await work();
  return performance.now() - start;
}
