/** Everything is killed while events are on their way: each is received, by its caller alone. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { until } from "../../testing/program.ts";
import { bearerBindings } from "../auth/support.ts";
import { startStack } from "../support/stack.ts";
import { newSecret, startReceiver } from "./receiver.ts";
import { eventsAt } from "./support.ts";

const TOKENS = { ada: "token-of-ada", bob: "token-of-bob", eve: "token-of-eve" };
const JOBS = 40;

test("while edge, worker and server are killed, each end reaches each receiver of its caller and no other", {
  timeout: 120_000,
}, async () => {
  const data = await mkdtemp(join(tmpdir(), "events-"));
  await using stack = await startStack({
    own: { data },
    workers: 1,
    bindings: { ...bearerBindings(TOKENS), ALLOW_LOOPBACK_CALLBACKS: "1" },
  });
  await using receivers = new AsyncDisposableStack();
  const callers = await Promise.all(
    Object.entries(TOKENS).map(async ([name, token]) => {
      const client = receivers.use(await eventsAt(stack.url, token));
      const good = receivers.use(await startReceiver(newSecret()));
      const bad = receivers.use(await startReceiver(newSecret()));
      // Every third answer of a bad one is good; others fail, hang or end in the middle.
      let n = 0;
      bad.state.answer = (response) => {
        n += 1;
        if (n % 3 === 0) response.writeHead(204).end();
        else if (n % 3 === 1) response.writeHead(500).end();
        else response.destroy();
      };
      for (const { url, secret } of [good, bad])
        await client.request("events/subscribe", { name: "job.ended", delivery: { url, secret } });
      return { name, client, good, bad };
    }),
  );
  const start = async (name: string, i: number) => {
    const caller = callers.find((one) => one.name === name);
    const args = { timer_name: `${name}${i}`, seconds: 1 + (i % 5) };
    // A start that a killed process cut off is made again: it is one job.
    await until("the start", () =>
      caller?.client.start("set_timer", args).then(
        ({ isError }) => !isError,
        () => false,
      ),
    );
  };
  const starts = (async () => {
    for (let i = 0; i < JOBS; i++) await Promise.all(callers.map(({ name }) => start(name, i)));
  })();
  for (const part of [stack.edge, stack.workers[0], stack.server, stack.edge]) {
    await sleep(1_000);
    await part?.kill();
    await part?.start();
  }
  await starts;
  const names = (name: string) => Array.from({ length: JOBS }, (_, i) => `timer_${name}${i}`).sort();
  const told = (delivered: { body: { data?: { job_name: string } } }[]) =>
    [...new Set(delivered.flatMap(({ body }) => body.data?.job_name ?? []))].sort();
  await until("all to be told", () => callers.every(({ good }) => told(good.delivered).length >= JOBS), 60_000);
  for (const { name, good, bad } of callers) {
    expect(told(good.delivered)).toEqual(names(name));
    for (const job of told(bad.delivered)) expect(names(name)).toContain(job);
    // A receiver of another test may have had this port before: what it is still sent is about that test's jobs.
    const forged = [...good.forged, ...bad.forged].filter((text) => /timer_(ada|bob|eve)\d/.test(String(text)));
    expect(forged).toEqual([]);
    // The same event has the same id, however often it comes.
    const ids = new Map([...good.delivered, ...bad.delivered].map(({ id, body }) => [id, body.data.job_name]));
    expect(new Set(ids.values()).size).toBe(ids.size);
  }
  await rm(data, { recursive: true, force: true });
});
