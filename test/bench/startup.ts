/** What is paid before the first request: the size of the bundle, and the time from the start of workerd to an answer. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import type { Bench } from "./bench.ts";
import { atMost, exactly, type Figure, figure, spreadOf } from "./figures.ts";
import { type HttpRequest, MODERN, mcpRequest } from "./mcp.ts";

export async function measureBundle({ bundles }: Bench): Promise<Figure[]> {
  const { dir, main } = bundles.product;
  const bundle = await readFile(join(dir, main));
  return [
    figure("bundle, minified", "KB", exactly(bundle.length / 1_000)),
    figure("bundle, gzip", "KB", exactly(gzipSync(bundle).length / 1_000), atMost(150)),
  ];
}

/** Starts the edge and an empty Worker in turn: the difference is what the edge's isolate takes. */
export async function measureStartup(bench: Bench, rounds: number): Promise<Figure[]> {
  const request = mcpRequest(MODERN, { method: "tools/list" });
  const product: number[] = [];
  const empty: number[] = [];
  for (let i = 0; i < rounds; i++) {
    product.push(await firstAnswer(bench, "product", "/mcp", request));
    empty.push(await firstAnswer(bench, "empty", "/", request));
  }
  const isolate = product.map((ms, i) => ms - (empty[i] ?? Number.NaN));
  return [
    figure("start of workerd to first answer, edge", "ms", spreadOf(product)),
    figure("start of workerd to first answer, empty Worker", "ms", spreadOf(empty)),
    figure("start of the edge's isolate to first answer (difference)", "ms", spreadOf(isolate), atMost(50)),
  ];
}

async function firstAnswer(bench: Bench, entry: "product" | "empty", path: string, request: HttpRequest) {
  const start = performance.now();
  await using edge = await bench.serve(entry);
  const response = await fetch(edge.url + path, { method: "POST", ...request });
  await response.text();
  if (!response.ok) throw new Error(`the first answer was ${response.status}`);
  return performance.now() - start;
}
