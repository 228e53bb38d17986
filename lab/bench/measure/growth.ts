/** Whether requests become slower with the number of jobs: embedded servers of different sizes, side by side. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Codec } from "@resonatehq/sdk";
import { Store } from "../../../server/engine/store.ts";
import { openDatabase } from "../../../server/node/database.ts";
import { NodeSql } from "../../../server/node/node-sql.ts";
import { startResonate } from "../../../test/support/resonate.ts";
import { type Figure, figure, spreadOf, type Target } from "../report/figures.ts";
import { type Bench, RESULT } from "../setup/bench.ts";
import { MODERN } from "../setup/mcp.ts";
import { describeOperations, type Operation, requestOf } from "../setup/operations.ts";

const SIZES = [100, 10_000, 100_000] as const;
const MEASURED = ["start_gathering, new job", "probe_status, 1 job", "tasks/get"];

/** A rate that is at most a tenth below another. */
const ALIKE: Target = { at: "least", value: 0.9 };

export async function measureGrowth(bench: Bench, rounds: number, seconds: number): Promise<Figure[]> {
  await using started = new AsyncDisposableStack();
  const edges: { url: string; operations: Operation[] }[] = [];
  for (const size of SIZES) {
    const data = await mkdtemp(join(tmpdir(), "durable-mcp-edge-bench-"));
    started.defer(() => rm(data, { recursive: true }));
    seed(data, size);
    const resonate = started.use(await startResonate({ own: true, args: ["--data", data] }));
    const edge = started.use(await bench.serve("product", resonate.env));
    const url = `${edge.url}/mcp`;
    edges.push({ url, operations: await describeOperations(bench, url) });
  }
  const figures: Figure[] = [];
  for (const name of MEASURED) {
    const rates = SIZES.map((): number[] => []);
    for (let round = -1; round < rounds; round++) {
      const order = [...edges.entries()];
      if (round % 2 === 1) order.reverse();
      for (const [i, { url, operations }] of order) {
        const operation = operations.find((each) => each.name === name);
        if (!operation) throw new Error(`no such operation: ${name}`);
        const load = { ...requestOf(operation, MODERN), url, connections: 16, seconds, expect: operation.expect };
        const { requests, seconds: taken } = await bench.generator.run(load);
        if (round >= 0) rates[i]?.push(requests / taken); // the first round is to warm up
      }
    }
    const [base = [], ...grown] = rates;
    figures.push(figure(`${name}, with ${SIZES[0]} jobs there`, "a second", spreadOf(base)));
    for (const [i, rate] of grown.entries()) {
      const share = spreadOf(rate.map((each, j) => each / (base[j] ?? Number.NaN)));
      figures.push(figure(`${name}, with ${SIZES[i + 1]} jobs, as a share of that`, "", share, ALIKE));
    }
  }
  return figures;
}

/** Writes the state file of a server with `size` completed jobs. */
function seed(data: string, size: number): void {
  const codec = new Codec();
  const { db } = openDatabase(data);
  const store = new Store(new NodeSql(db));
  const value = codec.encode(RESULT);
  const createdAt = Date.now() - 86_400_000;
  store.transaction(() => {
    for (let n = 0; n < size; n++) {
      const args = { latitude: 47 + n / 1_000_000, longitude: -121.5, year: 2013, month: 5 };
      const id = `seeded/weather_data_${args.latitude}_-121.5_2013_5`;
      const job = { func: "weather_data", args: [args], version: 1 };
      const promise = {
        id,
        state: "resolved" as const,
        param: codec.encode(job),
        value,
        tags: {
          "resonate:origin": id,
          "resonate:branch": id,
          "resonate:parent": id,
          "resonate:scope": "global",
          "resonate:target": "poll://any@seeded",
        },
        timeoutAt: createdAt + 3_600_000,
        createdAt,
        settledAt: createdAt + 1_000,
        callbacks: new Set<string>(),
        listeners: new Set<string>(),
      };
      store.putPromise(promise);
      const task = { id, state: "fulfilled" as const, version: 1, resumes: new Set<string>() };
      store.putTask(task);
    }
  });
  store.close();
}
