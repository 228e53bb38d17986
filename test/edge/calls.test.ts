import { expect, test } from "vitest";
import { startEdge } from "../../cli/launcher/local-edge.ts";

test("functions, streams and objects pass through the one remote method of an object", async () => {
  const bindings = { AUTH_MODE: "none", RESONATE_URL: "http://127.0.0.1:9" };
  await using edge = await startEdge({ entry: "test/edge/calls-edge.ts", port: 0, bindings });
  expect(await (await fetch(edge.url)).json()).toEqual({
    counts: [1, 3],
    doubled: [2, 4],
    failure: "there is no such tea",
  });
  const answer = await fetch(edge.url, { method: "POST", body: "a pot of tea" });
  expect(await answer.text()).toBe("A POT OF TEA");
});
