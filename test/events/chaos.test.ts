/** Every process is killed while events are being delivered: each event still reaches its caller, and no other. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { until } from "../../testing/stack/program.ts";
import { bearerBindings } from "../auth/support.ts";
import { startStack } from "../support/stack.ts";
import { newSecret, startReceiver } from "./receiver.ts";
import { eventsAt } from "./support.ts";

const TOKENS = { ada: "static-token-of-ada", bob: "static-token-of-bob" };
const JOBS = 4;

test("while edge, worker and server are killed, each end reaches each receiver of its caller and no other", async () => {
  const data = await mkdtemp(join(tmpdir(), "events-"));
  await using stack = await startStack({
    own: { data },
    bindings: { ...bearerBindings(TOKENS), ALLOW_LOOPBACK_CALLBACKS: "1" },
  });
  await using receivers = new AsyncDisposableStack();
  const callers = await Promise.all(
    Object.entries(TOKENS).map(async ([name, token]) => {
      const client = receivers.use(await eventsAt(stack.url, token));
      const [good, bad] = [
        receivers.use(await startReceiver(newSecret())),
        receivers.use(await startReceiver(newSecret())),
      ];
      // This receiver answers only the second attempt of each delivery, so that the kill interrupts many.
      const seen = new Set<string>();
      bad.state.answer = (response) => {
        const id = bad.delivered.at(-1)?.id ?? "";
        if (seen.has(id)) response.writeHead(204).end();
        seen.add(id);
      };
      for (const { url, secret } of [good, bad])
        await client.request("events/subscribe", { name: "job.ended", delivery: { url, secret } });
      const names = Array.from({ length: JOBS }, (_, i) => `${name}${i}`);
      return { client, names, good, bad };
    }),
  );
  const starts = callers.map(async ({ client, names }) => {
    for (const [i, timer_name] of names.entries()) {
      // A start that a kill interrupted is repeated, and gives the same job.
      const start = () => client.start("set_timer", { timer_name, seconds: 1 + (i % 3) });
      await until("the start", () =>
        start().then(
          ({ isError }) => !isError,
          () => false,
        ),
      );
    }
  });
  for (const part of [stack.edge, stack.workers[0], stack.server]) {
    await part?.kill();
    await part?.start();
  }
  await Promise.all(starts);
  // From here on no request reaches the edge: it must deliver the remaining events by itself.
  await until("an attempt that hangs", () => callers.some(({ bad }) => bad.delivered.length > 0));
  await stack.edge.kill();
  await stack.edge.start();
  // Ports are reused, so deliveries for another test's receiver may arrive here. They are refused and ignored.
  const own = (text: string) => callers.some(({ names }) => names.some((name) => text.includes(`timer_${name}"`)));
  const told = (delivered: { body: { data?: { job_name: string } } }[]) =>
    [...new Set(delivered.flatMap(({ body }) => body.data?.job_name ?? []))].sort();
  const all = callers.flatMap(({ names, good, bad }) => [good, bad].map((receiver) => ({ names, ...receiver })));
  await until("all to be told", () => all.every(({ delivered }) => told(delivered).length >= JOBS), 60_000);
  for (const { names, delivered, forged } of all) {
    expect(told(delivered)).toEqual(names.map((name) => `timer_${name}`).sort());
    expect(forged.filter(own)).toEqual([]);
    // An event has the same id in every attempt.
    const ids = new Map(delivered.map(({ id, body }) => [id, body.data.job_name]));
    expect(ids.size).toBe(JOBS);
  }
  await rm(data, { recursive: true, force: true });
});
