/** The load generator, in a separate process. It sends requests for its parent and reports the answers. */
import autocannon from "autocannon";
import { quantileSorted } from "simple-statistics";
import { type HttpRequest, isNumbered, numbered } from "./mcp.ts";

export interface Load extends HttpRequest {
  url: string;
  connections: number;
  seconds: number;
  /** The number of the first request, for {@link numbered}; it grows by one per request. */
  first: number;
  /** The text that each answer must contain. */
  expect: string;
}

export interface Loaded {
  /** How many requests were answered as expected. */
  requests: number;
  seconds: number;
  /** Milliseconds. */
  p50: number;
  p99: number;
  /** The CPU time of this process, in seconds. */
  cpu: number;
  /** Errors, if there were any. */
  failure: string | undefined;
}

/** The interval, in milliseconds, at which the end of a run is checked. */
const SAMPLE = 20;

/** The smallest number of answers per connection in a run, and the longest run in seconds. */
const ANSWERS = 2;
const LONGEST = 60;

async function generate({ url, headers, body, connections, seconds, first, expect }: Load): Promise<Loaded> {
  let n = first;
  const setupRequest = (request: autocannon.Request) => ({ ...request, body: numbered(body, n++) });
  const latencies: number[] = [];
  let failure: string | undefined;
  const cpu = process.cpuUsage();
  const start = performance.now();
  let last = start;
  await new Promise((resolve, reject) => {
    const run = autocannon(
      {
        url,
        method: "POST",
        headers,
        connections,
        duration: LONGEST,
        sampleInt: SAMPLE,
        requests: isNumbered(body) ? [{ setupRequest }] : [{ body }],
        verifyBody: (answer) => {
          const right = String(answer).includes(expect);
          if (!right) failure ??= `unexpected answer: ${String(answer).slice(0, 500)}`;
          return right;
        },
      },
      (error, result) => (error ? reject(error) : resolve(result)),
    );
    run.on("response", (_client, _status, _bytes, milliseconds) => {
      last = performance.now();
      latencies.push(milliseconds);
      if (last - start >= seconds * 1_000 && latencies.length >= ANSWERS * connections) run.stop();
    });
    run.on("reqError", (error) => {
      failure ??= `no answer: ${error instanceof Error ? error.message : error}`;
    });
  });
  const { user, system } = process.cpuUsage(cpu);
  latencies.sort((a, b) => a - b);
  return {
    requests: latencies.length,
    seconds: (last - start) / 1_000,
    p50: latencies.length > 0 ? quantileSorted(latencies, 0.5) : Number.NaN,
    p99: latencies.length > 0 ? quantileSorted(latencies, 0.99) : Number.NaN,
    cpu: (user + system) / 1_000_000,
    failure,
  };
}

process.on("message", async (load: Load) => process.send?.(await generate(load)));
process.on("disconnect", () => process.exit());
