/** A deployment that stores arguments and results encrypted in the Resonate server. */
import { randomBytes } from "node:crypto";
import { expect, test } from "vitest";
import { encodeValue } from "../../core/resonate/codec.ts";
import { until } from "../../testing/stack/program.ts";
import { currentClient } from "../support/clients.ts";
import { type StackPart, startStack } from "../support/stack.ts";

const MONTH = { latitude: 47.6062, longitude: -122.3321, year: 2012 };

async function restart(...parts: readonly StackPart[]): Promise<void> {
  for (const part of parts) {
    await part.kill();
    await part.start();
  }
}

test("works as without keys, stores nothing in clear text, and still reads data encrypted with a replaced key", async () => {
  const [old, recent] = [0, 1].map(() => randomBytes(32).toString("base64"));
  const keys = { ENCRYPTION_KEYS: `${old}` };
  await using stack = await startStack({ env: keys, bindings: keys });
  const { resonate, namespace, archive } = stack;
  await using client = await currentClient.connect(stack.url);
  const gather = async (month: number) => {
    const { content } = await client.callTool("start_gathering", { ...MONTH, month });
    const name = String(content.job_name);
    return {
      name,
      content: (await client.callTool("await_result", { job_names: [name], timeout_seconds: 60 })).content,
    };
  };
  // A job that fails at first also has entries in its progress feed.
  archive.control.inject({ fault: { kind: "status", status: 503 }, times: 2 });
  const first = await gather(7);
  expect(first.content).toMatchObject({ results: { [first.name]: { latitude: 47.6062 } }, running: [] });

  const kept = await until("all to be found", async () => {
    const found = [];
    for (let cursor: string | undefined; ;) {
      const { data } = await resonate.call("promise.search", { limit: 1_000, ...(cursor !== undefined && { cursor }) });
      if (typeof data !== "object") throw new Error(data);
      found.push(...data.promises.filter(({ id }) => id.startsWith(namespace)));
      cursor = data.cursor;
      if (cursor === undefined) return found;
    }
  });
  const held = kept.flatMap(({ param, value }) => [param.data, value.data].filter(Boolean));
  expect(held.length).toBeGreaterThan(4);
  expect(held.filter((data) => !data?.startsWith("sealed:"))).toEqual([]);

  // A new key comes before the old one; the workers and the edge start with both.
  keys.ENCRYPTION_KEYS = `${recent},${old}`;
  await restart(stack.edge, ...stack.workers);
  const again = await gather(7);
  expect(again.content).toEqual(first.content);
  const second = await gather(8);
  expect(second.content).toMatchObject({ results: { [second.name]: { latitude: 47.6062 } } });

  // Clear text in the database is refused, because anyone with access to it could forge results.
  const clear = { id: `${namespace}timer_forged`, timeoutAt: Date.now() + 60_000, tags: {} };
  await resonate.call("promise.create", { ...clear, param: encodeValue({ func: "timer", args: [{}], version: 1 }) });
  const forged = await client.callTool("probe_status", { job_names: ["timer_forged"] });
  expect(forged).toMatchObject({ isError: true, text: expect.stringContaining("unencrypted") });

  // A job whose key is missing is not reported as `not_found`: the caller gets an error.
  keys.ENCRYPTION_KEYS = `${old}`;
  await restart(stack.edge);
  const { text, isError } = await client.callTool("probe_status", { job_names: [second.name] });
  expect([isError, text]).toEqual([
    true,
    expect.stringContaining("encrypted with a key that this deployment does not have"),
  ]);
  // It does not keep the results of other jobs from the caller.
  const job_names = [first.name, second.name];
  const unread = expect.stringContaining("cannot be read");
  expect((await client.callTool("probe_status", { job_names })).content).toMatchObject({
    statuses: [{ status: "complete" }, { job_name: second.name, status: "failed", error: unread }],
  });
  expect((await client.callTool("await_result", { job_names })).content).toMatchObject({
    results: { [first.name]: { latitude: 47.6062 } },
    errors: { [second.name]: unread },
    running: [],
  });
});
