import { MINUTE } from "durable-mcp-edge";
import { startStack, startUpstream } from "durable-mcp-edge/testing";
import { expect, test } from "vitest";

test("waits until the site is up, even if the worker dies", { timeout: MINUTE }, async () => {
  await using site = await startUpstream();
  await using stack = await startStack();
  site.answers({ status: 503 });
  const answer = stack.call("wait_for_site", { url: site.url });
  await site.waitForRequests(1);
  await stack.workers[0]?.kill();

  site.answers({ status: 200 });
  await stack.workers[0]?.start();
  await stack.clock.advance(MINUTE);
  expect(await answer).toMatchObject({ status: "complete", result: { url: site.url, status: 200 } });
});
