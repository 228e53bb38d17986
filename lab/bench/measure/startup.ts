/** The costs before the first request: the size of the bundle, and the time from the start of workerd to an answer. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { edgeStart } from "../../../test/support/edge-start.ts";
import { cpuSeconds } from "../../../test/support/usage.ts";
import { atMost, exactly, type Figure, figure, spreadOf } from "../report/figures.ts";
import { type Bench, pidOf } from "../setup/bench.ts";
import { type HttpRequest, MODERN, mcpRequest } from "../setup/mcp.ts";

export async function measureBundle({ bundles }: Bench): Promise<Figure[]> {
  const { product } = bundles;
  const read = (names: readonly string[]) => Promise.all(names.map((name) => readFile(join(product.dir, name))));
  const start = await read(await edgeStart(product));
  const all = await read([product.main, ...product.modules]);
  return [
    figure("code of the start, minified", "KB", exactly(sum(start.map(({ length }) => length)) / 1_000)),
    figure("code of the start, gzip", "KB", exactly(zipped(start) / 1_000), atMost(115)),
    figure(
      "with the modules that are loaded when they are needed, gzip",
      "KB",
      exactly(zipped(all) / 1_000),
      atMost(450),
    ),
  ];
}

const zipped = (files: readonly Buffer[]) => sum(files.map((file) => gzipSync(file).length));

const sum = (sizes: readonly number[]) => sizes.reduce((all, size) => all + size, 0);

/** Starts the edge and an empty Worker in turn. The difference is the cost of the edge's isolate. */
export async function measureStartup(bench: Bench, rounds: number): Promise<Figure[]> {
  const request = mcpRequest(MODERN, { method: "tools/list" });
  const product: Start[] = [];
  const empty: Start[] = [];
  for (let i = 0; i < rounds; i++) {
    product.push(await firstAnswer(bench, "product", "/mcp", request));
    empty.push(await firstAnswer(bench, "empty", "/", request));
  }
  const of = (starts: Start[], key: keyof Start) => spreadOf(starts.map((start) => start[key]));
  const isolate = (key: keyof Start) =>
    spreadOf(product.map((start, i) => start[key] - (empty[i]?.[key] ?? Number.NaN)));
  return [
    figure("start of workerd to first answer, edge", "ms", of(product, "ms")),
    figure("start of workerd to first answer, empty Worker", "ms", of(empty, "ms")),
    figure("start of the edge's isolate to first answer (difference)", "ms", isolate("ms"), atMost(50)),
    figure("CPU time of that", "ms", isolate("cpu")),
  ];
}

/** The time to the first answer and its CPU time, in milliseconds. */
interface Start {
  ms: number;
  cpu: number;
}

async function firstAnswer(
  bench: Bench,
  entry: "product" | "empty",
  path: string,
  request: HttpRequest,
): Promise<Start> {
  const start = performance.now();
  await using edge = await bench.serve(entry);
  const response = await fetch(edge.url + path, { method: "POST", ...request });
  await response.text();
  if (!response.ok) throw new Error(`the first answer was ${response.status}`);
  return { ms: performance.now() - start, cpu: cpuSeconds(pidOf(edge)) * 1_000 };
}
