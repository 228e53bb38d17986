/** The extra latency of a fast call through the wrap, compared call by call. */
import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Client } from "@modelcontextprotocol/client";
import { quantile } from "simple-statistics";
import { COUNTING, serve } from "../../test/wrap/servers.ts";
import { connect, wrappedStack } from "../../test/wrap/support.ts";

const WARM_UP = 20;

export async function latency(calls: number): Promise<string[]> {
  const file = join(await mkdtemp(join(tmpdir(), "counting-")), "calls");
  await using server = await serve(COUNTING, [], { CALLS: file });
  await using stack = await wrappedStack({ name: "counting", url: server.url, allowPrivate: true });
  const [direct, through] = [await connect(server.url, "2025"), await connect(stack.url)];
  const time = async (client: Client, name: string, i: number) => {
    const began = performance.now();
    await client.callTool({ name, arguments: { id: `${i}` } });
    return performance.now() - began;
  };
  for (const name of ["read", "write"]) {
    const times: Record<"without" | "with", number[]> = { without: [], with: [] };
    for (let i = -WARM_UP; i < calls; i++) {
      const [without, within] = [await time(direct, name, i), await time(through, name, i)];
      if (i < 0) continue;
      times.without.push(without);
      times.with.push(within);
    }
    const of = (at: number, which: keyof typeof times) => quantile(times[which], at);
    for (const [what, at] of [
      ["p50", 0.5],
      ["p95", 0.95],
    ] as const) {
      const [without, within] = [of(at, "without"), of(at, "with")];
      const added = (within - without).toFixed(1);
      console.log(`${name} ${what}: ${without.toFixed(1)} ms without, ${within.toFixed(1)} ms with: ${added} ms more`);
    }
  }
  await Promise.all([direct.close(), through.close()]);
  return [];
}
