import { randomBytes, randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { Codec, type Request } from "@resonatehq/sdk";
import { type Bundle, bundleEdge } from "../../../cli/bundle/bundle.ts";
import { type EdgeProcess, serveBundle } from "../../../cli/launcher/local-edge.ts";
import { creationOf, type Resonate, startResonate } from "../../../test/support/resonate.ts";
import { ownGroup } from "../../../testing/stack/worker-process.ts";
import { answerRequest as weather } from "../../../tools/weather/sample-archive/archive.ts";
import { type Generator, startGenerator } from "./generator.ts";

/** The compared Workers, bundled as for a deployment. */
const ENTRIES = {
  product: "functions/index.ts",
  floor: "lab/bench/workers/floor.ts",
  empty: "lab/bench/workers/empty.ts",
};
type Entry = keyof typeof ENTRIES;

/** A Resonate server and a load generator, which all measurements share. */
export interface Bench extends AsyncDisposable {
  /** The server at `RESONATE_URL`, or an embedded one in memory. */
  readonly resonate: Resonate;
  readonly generator: Generator;
  readonly namespace: string;
  readonly group: string;
  readonly bundles: Readonly<Record<Entry, Bundle>>;
  /** Serves a bundle in workerd. `bindings` override those for the shared server; `inspectorPort` opens an inspector. */
  serve(entry: Entry, bindings?: Record<string, string>, inspectorPort?: number): Promise<EdgeProcess>;
  /** The body of a call to Resonate in the edge's form. */
  envelope<K extends Request["kind"]>(kind: K, data: Extract<Request, { kind: K }>["data"]): string;
  /** The body of a call that creates a job's promise. */
  creation(name: string, func: string, args: object): string;
  complete(name: string): Promise<void>;
}

const codec = new Codec();
const DAY = 86_400_000;

/** The result of completed jobs: a month of weather. */
export const RESULT = weather(
  new URLSearchParams({
    latitude: "47.6",
    longitude: "-122.3",
    start_date: "2013-05-01",
    end_date: "2013-05-31",
    daily: "temperature_2m_max,temperature_2m_min,precipitation_sum",
    timezone: "auto",
  }),
);

export async function startBench(): Promise<Bench> {
  await using started = new AsyncDisposableStack();
  // Bundled once, so that the whole run measures the same sources.
  const bundles = {
    product: await bundleEdge(ENTRIES.product),
    floor: await bundleEdge(ENTRIES.floor),
    empty: await bundleEdge(ENTRIES.empty),
  };
  const resonate = started.use(await startResonate());
  const generator = started.use(startGenerator());
  const { group, namespace, env } = ownGroup();
  const token = resonate.env.RESONATE_TOKEN;
  const bindings = {
    ...resonate.env,
    ...env,
    AUTH_MODE: "none",
    RATE_LIMIT: "0",
    TASK_KEY: randomBytes(32).toString("hex"),
  };
  const envelope: Bench["envelope"] = (kind, data) =>
    JSON.stringify({
      kind,
      head: { corrId: randomUUID(), version: "2026-04-01", ...(token && { auth: token }) },
      data,
    });
  const all = started.move();
  return {
    resonate,
    generator,
    namespace,
    group,
    bundles,
    serve: (entry, more, inspectorPort) =>
      serveBundle(bundles[entry], { port: 0, inspectorPort, bindings: { ...bindings, ...more } }),
    envelope,
    creation: (name, func, args) =>
      envelope("promise.create", creationOf({ id: namespace + name, func, args, group, timeoutAt: Date.now() + DAY })),
    async complete(name) {
      const value = codec.encode(RESULT);
      const answer = await resonate.call("promise.settle", { id: namespace + name, state: "resolved", value });
      if (answer.head.status !== 200) throw new Error(`${name} could not be completed: ${answer.data}`);
    },
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}

export function pidOf({ process }: EdgeProcess): number {
  if (process.pid === undefined) throw new Error("workerd has no process");
  return process.pid;
}

/** Applies `work` to each item, `width` at a time; returns the results in order. */
export async function inParallel<T, R>(
  items: readonly T[],
  width: number,
  work: (item: T) => Promise<R>,
): Promise<R[]> {
  const results: R[] = new Array(items.length);
  const rest = items.entries();
  const worker = async () => {
    for (const [index, item] of rest) results[index] = await work(item);
  };
  await Promise.all(Array.from({ length: width }, worker));
  return results;
}

export const seconds = (count: number) => delay(count * 1_000);
