/** The delay from the settlement of a job to the receipt of its web hook, compared with a bare POST to the same receiver. */
import { Codec } from "@resonatehq/sdk";
import { quantile } from "simple-statistics";
import { newToken } from "../../../cli/static-token.ts";
import { callerOf } from "../../../core/author/index.ts";
import { bearerBindings, callerAt } from "../../../test/auth/support.ts";
import { newSecret, startReceiver } from "../../../test/events/receiver.ts";
import { eventsAt } from "../../../test/events/support.ts";
import { startGate } from "../../../test/support/gate.ts";
import { resonateAt } from "../../../test/support/resonate.ts";
import { until } from "../../../testing/stack/program.ts";
import { startWorker } from "../../../testing/stack/worker-process.ts";
import { exactly, type Figure, figure, spreadOf } from "../report/figures.ts";
import { type Bench, seconds } from "../setup/bench.ts";

const NAME = "bench";
const TOKEN = "static-token-of-the-bench";

const HINT = "worker's hint";

/** Time enough for the caller's object to listen to a job, in seconds. */
const BETWEEN = 0.5;

type Ends = (id: string) => Promise<number>;

/** Measures on one machine; in an account (unless `RESONATE_URL` is set); and without the server's pushes, by a worker's hint. */
export async function measureWebHooks(bench: Bench, samples: number): Promise<Figure[]> {
  const { token, sha256 } = newToken();
  const account = {
    RESONATE_URL: "",
    RESONATE_TOKEN: "",
    RESONATE_PUBLIC: "1",
    RESONATE_TOKENS: JSON.stringify([{ name: NAME, sha256 }]),
  };
  const settled = (server: Pick<Bench["resonate"], "call">) => async (id: string) => {
    await seconds(BETWEEN);
    const began = Date.now();
    await server.call("promise.settle", { id, state: "resolved", value: new Codec().encode("done") });
    return began;
  };
  return [
    ...(await measure("one machine", bench, samples, {}, () => settled(bench.resonate))),
    ...(process.env.RESONATE_URL
      ? []
      : await measure("account", bench, samples, account, (url) =>
          settled(resonateAt(`${url}/resonate`, undefined, token)),
        )),
    ...(await measureHinted(bench, samples)),
  ];
}

/** As with a remote server: no connection notifies the edge of ends, so the worker does. */
async function measureHinted(bench: Bench, samples: number): Promise<Figure[]> {
  await using gate = await startGate(bench.resonate.url);
  gate.muteStreams(true);
  await using workers = new AsyncDisposableStack();
  const VIEW_KEY = "v".repeat(32);
  return await measure(HINT, bench, samples, { RESONATE_URL: gate.url, VIEW_KEY }, async (url) => {
    const own = { RESONATE_GROUP: bench.group, RESONATE_NAMESPACE: bench.namespace };
    workers.use(await startWorker({ ...bench.resonate.env, ...own, EDGE_URL: url, VIEW_KEY }));
    return async (id) => (await bench.resonate.settled(id)).settledAt ?? Number.NaN;
  });
}

/** `endsOf` makes a function that waits for the end of a job, or ends it; it resolves with the time, in milliseconds since the epoch. */
async function measure(
  where: string,
  bench: Bench,
  samples: number,
  bindings: Record<string, string>,
  endsOf: (url: string) => Ends | Promise<Ends>,
): Promise<Figure[]> {
  const callers = bearerBindings({ [NAME]: TOKEN });
  await using edge = await bench.serve("product", { ...callers, ALLOW_LOOPBACK_CALLBACKS: "1", ...bindings });
  const url = `${edge.url}/mcp`;
  const endOf = await endsOf(edge.url);
  const { key } = await callerOf(NAME);
  await using receiver = await startReceiver(newSecret());
  await using client = await eventsAt(url, TOKEN);
  const delivery = { url: receiver.url, secret: receiver.secret };
  await client.request("events/subscribe", { name: "job.ended", delivery });
  const { call } = callerAt(url, TOKEN);
  const hooks: number[] = [];
  const posts: number[] = [];
  for (let n = 0; n < samples; n++) {
    const { job_name } = await call("set_timer", { timer_name: `${where} ${n}`, seconds: where === HINT ? 1 : 3_600 });
    const began = await endOf(`${bench.namespace}${key}${job_name}`);
    await until("the web hook", () => receiver.delivered.length > n);
    const { at } = receiver.delivered.at(-1) ?? { at: Number.NaN };
    hooks.push(at - began);
    const begun = performance.now();
    await (await fetch(receiver.url, { method: "POST", body: "x".repeat(500) })).arrayBuffer();
    posts.push(performance.now() - begun);
  }
  return [
    figure(`settlement to web hook, ${where}`, "ms", spreadOf(hooks)),
    figure(`settlement to web hook, ${where}, p99`, "ms", p99(hooks)),
    figure(`bare POST beside it, ${where}`, "ms", spreadOf(posts)),
    figure(`bare POST beside it, ${where}, p99`, "ms", p99(posts)),
  ];
}

const p99 = (values: number[]) => ({ ...exactly(quantile(values, 0.99)), n: values.length });
