/** Throughput, latency and CPU time of each request and of its floor, side by side in rounds. */
import type { EdgeProcess } from "../../../cli/launcher/local-edge.ts";
import { cpuSeconds } from "../../../test/support/usage.ts";
import { type Spread, spreadOf } from "../report/figures.ts";
import { type Bench, pidOf } from "../setup/bench.ts";
import type { Load } from "../setup/load.ts";
import { numbered, type Revision } from "../setup/mcp.ts";
import { describeOperations, floorRequestOf, type Operation, requestOf } from "../setup/operations.ts";

const CONNECTIONS = 16;

/** How long each request runs before any is measured, in seconds. */
const WARM_UP = 0.3;

/** One run of one request. */
interface Run {
  /** Requests per second. */
  rate: number;
  /** Milliseconds. */
  p50: number;
  p99: number;
  /** Microseconds of CPU time per request, by process; unknown for a server at RESONATE_URL. */
  cpu: { edge: number; generator: number; server: number };
}

/** The measurements of one request in one revision. A ratio compares two runs of one round. */
export interface Pair {
  operation: Operation;
  revision: Revision;
  product: Run[];
  floor: Run[];
}

export interface RequestOptions {
  /** How long each run takes, in seconds. */
  seconds: number;
  /** Only the operations of the short form. */
  short: boolean;
}

/** Starts an edge and a floor, which are disposed of with `use`, and warms up all operations. */
export async function prepareRequests(
  bench: Bench,
  { seconds, short }: RequestOptions,
  use: AsyncDisposableStack,
): Promise<Requests> {
  const edge = use.use(await bench.serve("product"));
  const floor = use.use(await bench.serve("floor"));
  const url = `${edge.url}/mcp`;
  const operations = (await describeOperations(bench, url)).filter((operation) => operation.short || !short);
  const sizes = new Map<Operation, number>();
  for (const operation of operations) sizes.set(operation, await sizeOfAnswer(url, operation));
  const requests = new Requests({ bench, edge, floor, sizes, seconds });
  await requests.warmUp();
  return requests;
}

interface RequestParts {
  bench: Bench;
  edge: EdgeProcess;
  floor: EdgeProcess;
  /** The size of each operation's answer, in bytes. */
  sizes: ReadonlyMap<Operation, number>;
  /** How long each run takes. */
  seconds: number;
}

/** The measured requests, and the edge and the floor that answer them. */
export class Requests {
  readonly pairs: readonly Pair[];
  readonly edge: EdgeProcess;
  /** The edge's MCP endpoint. */
  readonly url: string;
  readonly #parts: RequestParts;
  #answered = 0;

  constructor(parts: RequestParts) {
    this.edge = parts.edge;
    this.url = `${parts.edge.url}/mcp`;
    this.#parts = parts;
    this.pairs = [...parts.sizes.keys()].flatMap((operation) =>
      operation.revisions.map((revision): Pair => ({ operation, revision, product: [], floor: [] })),
    );
  }

  /** How many requests the edge has answered. */
  get answered(): number {
    return this.#answered;
  }

  /** Runs each request for a short time, without a measurement. */
  async warmUp(): Promise<void> {
    await this.#runRound(this.pairs, false, WARM_UP);
  }

  /** Measures pairs for further rounds. Default: all pairs. */
  async measure(rounds: number, pairs: readonly Pair[] = this.pairs): Promise<void> {
    for (let i = 0; i < rounds; i++) {
      for (const { pair, product, floor } of await this.#runRound(pairs, i % 2 === 1, this.#parts.seconds)) {
        pair.product.push(product);
        pair.floor.push(floor);
      }
    }
  }

  /** One round: the floor runs between the two revisions; every second round has the opposite order. */
  async #runRound(pairs: readonly Pair[], reverse: boolean, seconds: number) {
    const runs: { pair: Pair; product: Run; floor: Run }[] = [];
    for (const [operation, [first, ...others]] of Map.groupBy(pairs, ({ operation }) => operation)) {
      const order = [first, undefined, ...others];
      if (reverse) order.reverse();
      const time = seconds * (operation.length ?? 1);
      let floor: Run | undefined;
      const products: [Pair, Run][] = [];
      for (const pair of order) {
        if (pair) products.push([pair, await this.#runProduct(pair, time)]);
        else floor = await this.#runFloor(operation, time);
      }
      if (floor) for (const [pair, product] of products) runs.push({ pair, product, floor });
    }
    return runs;
  }

  async #runProduct({ operation, revision }: Pair, seconds: number): Promise<Run> {
    const { expect, connections = CONNECTIONS } = operation;
    const request = requestOf(operation, revision);
    return this.#run(this.edge, { url: this.url, ...request, connections, seconds, expect });
  }

  async #runFloor(operation: Operation, seconds: number): Promise<Run> {
    const { floor, sizes } = this.#parts;
    const { calls, connections = CONNECTIONS } = operation;
    const expect = calls.length === 1 ? '"status":200' : "xxx";
    const request = floorRequestOf(calls, { bytes: sizes.get(operation) ?? 0 });
    return this.#run(floor, { url: `${floor.url}/`, ...request, connections, seconds, expect });
  }

  async #run(process: EdgeProcess, load: Omit<Load, "first">): Promise<Run> {
    const { generator, resonate } = this.#parts.bench;
    const { program } = resonate;
    const before = { edge: cpuSeconds(pidOf(process)), server: program ? cpuSeconds(program.pid) : Number.NaN };
    const loaded = await generator.run(load);
    if (process === this.edge) this.#answered += loaded.requests;
    const each = (used: number) => (used / loaded.requests) * 1e6;
    return {
      rate: loaded.requests / loaded.seconds,
      p50: loaded.p50,
      p99: loaded.p99,
      cpu: {
        edge: each(cpuSeconds(pidOf(process)) - before.edge),
        generator: each(loaded.cpu),
        server: program ? each(cpuSeconds(program.pid) - before.server) : Number.NaN,
      },
    };
  }
}

async function sizeOfAnswer(url: string, operation: Operation): Promise<number> {
  const [revision] = operation.revisions;
  if (!revision) return 0;
  const request = requestOf(operation, revision);
  const response = await fetch(url, { method: "POST", ...request, body: numbered(request.body, 100_000_000) });
  return (await response.arrayBuffer()).byteLength;
}

/** The ratios of the product to the floor, per round. */
export const RATIOS = {
  throughput: ({ product, floor }: Pair) => product.map(({ rate }, i) => rate / (floor[i]?.rate ?? Number.NaN)),
  /** The ratio of CPU times per request, which is the ratio of the throughputs if workerd were the only limit. */
  "CPU time": ({ product, floor }: Pair) => product.map(({ cpu }, i) => (floor[i]?.cpu.edge ?? Number.NaN) / cpu.edge),
};

export function summarize(pair: Pair) {
  const { operation, revision, product, floor } = pair;
  const side = (runs: Run[]) => {
    const spread = (value: (run: Run) => number): Spread => spreadOf(runs.map(value));
    return {
      requests_per_second: spread(({ rate }) => rate),
      p50_ms: spread(({ p50 }) => p50),
      p99_ms: spread(({ p99 }) => p99),
      cpu_us: spread(({ cpu }) => cpu.edge),
      generator_cpu_us: spread(({ cpu }) => cpu.generator),
      server_cpu_us: spread(({ cpu }) => cpu.server),
    };
  };
  return {
    operation: operation.name,
    revision,
    product: side(product),
    floor: side(floor),
    ratio: spreadOf(RATIOS.throughput(pair)),
    cpu_ratio: spreadOf(RATIOS["CPU time"](pair)),
    target: operation.targets?.[revision],
  };
}

export type Summary = ReturnType<typeof summarize>;
