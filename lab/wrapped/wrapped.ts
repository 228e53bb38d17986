/**
 * `npm run wrapped -- NAME…`: checks of wrapped servers that take long, kill processes at random, or need software outside npm.
 *
 *   compare   [--server NAME,…]       real servers of npm and PyPI, directly and through the wrap: lists, calls, errors, progress,
 *             cancellation, prompts and resources, for clients of both revisions; prints the differences
 *   chaos     [--seed N] [--kills 100]  kills the worker, the edge, the Resonate server and the wrapped server at random,
 *             [--over http|stdio]       over one transport after the other, unless one is named
 *   patience  [--minutes 10]            a tool that takes this long, through clients that give up after five seconds
 *   latency   [--calls 300]             the extra latency of a fast call through the wrap
 *   memory    [--calls 100000] [--jobs] the memory of every process of `wrap`; with --jobs each call has a name, and is a job
 *   large     [--seed N] [--rounds 6]   answers of 5 MB, collected completely although the worker is killed while storing them
 *   python                              FastMCP servers from PyPI, with and without tasks
 *
 * Exits with 0 if all checks pass.
 */
import { randomInt } from "node:crypto";
import { parseArgs } from "node:util";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    seed: { type: "string" },
    kills: { type: "string" },
    minutes: { type: "string" },
    calls: { type: "string" },
    over: { type: "string" },
    rounds: { type: "string" },
    server: { type: "string" },
    jobs: { type: "boolean", default: false },
  },
});
const { seed = randomInt(2 ** 31), kills = 100, minutes, calls, over, rounds, server, jobs } = values;
const ways = (["http", "stdio"] as const).filter((way) => over === undefined || over === way);
if (ways.length === 0) throw new Error("--over takes http or stdio.");

const PROOFS: Record<string, () => Promise<string[]>> = {
  compare: async () => (await import("./compare.ts")).compare(server),
  chaos: async () => {
    const { chaos } = await import("./chaos.ts");
    const problems: string[] = [];
    for (const way of ways) problems.push(...(await chaos(Number(seed), Number(kills), way)));
    return problems;
  },
  patience: async () => (await import("./patience.ts")).patience(Number(minutes ?? 10)),
  latency: async () => (await import("./latency.ts")).latency(Number(calls ?? 300)),
  memory: async () => (await import("./memory.ts")).memory(Number(calls ?? 100_000), jobs),
  large: async () => (await import("./large.ts")).large(Number(seed), Number(rounds ?? 6)),
  python: async () => (await import("./python.ts")).python(),
};

const unknown = positionals.filter((name) => !Object.hasOwn(PROOFS, name));
if (unknown.length > 0 || positionals.length === 0) throw new Error(`Give some of ${Object.keys(PROOFS).join(", ")}.`);
let failures = 0;
for (const name of positionals) {
  const problems = (await PROOFS[name]?.()) ?? [];
  for (const problem of problems) console.log(`${name}: ${problem}`);
  console.log(`${name}: ${problems.length === 0 ? "as it has to be" : `${problems.length} problems`}`);
  failures += problems.length;
}
process.exit(failures > 0 ? 1 : 0);
