import { expect, test } from "vitest";
import { until } from "../../testing/stack/program.ts";
import { promise, startServer, unique } from "./server.ts";

test("one connection too many is refused with 503, until one is closed", async () => {
  // A separate server, since other tests could not connect to a full one.
  await using server = await startServer({ own: true });
  const group = unique("g");
  const open: { close(): void }[] = [];
  try {
    let refused = 0;
    while (refused === 0 && open.length <= 1000) {
      const polls = await Promise.all(
        Array.from({ length: 50 }, (_, n) => server.pollStatus(group, `${open.length + n}`)),
      );
      for (const poll of polls) {
        if (poll.status === 200) open.push(poll);
        else {
          expect(poll.status).toBe(503);
          refused += 1;
          poll.close();
        }
      }
    }
    expect(refused).toBeGreaterThan(0);
    // Calls are still answered.
    expect((await server.call("promise.create", promise(unique("full")))).status).toBe(200);
    open.pop()?.close();
    const poll = await until("a free slot", async () => {
      const poll = await server.pollStatus(group, "again");
      if (poll.status === 200) return poll;
      poll.close();
      return undefined;
    });
    open.push(poll);
  } finally {
    for (const poll of open) poll.close();
  }
});
