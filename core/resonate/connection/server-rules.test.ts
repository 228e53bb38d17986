import { createServer } from "node:http";
import { expect, test } from "vitest";
import { listen } from "../../../testing/stack/http-server.ts";
import { ResonateClient } from "./client.ts";
import { ServerRules } from "./server-rules.ts";

test.each([
  ["0.9.8", 200, false],
  ["0.10", 400, true],
])("the rules of %s are found out although the server fails at first", async (_release, status, armsTargetsOnly) => {
  let asked = 0;
  const server = createServer((request, response) => {
    asked += 1;
    request.resume();
    const head = { status: asked === 1 ? 500 : status };
    response.writeHead(head.status, { "content-type": "application/json" });
    response.end(JSON.stringify({ kind: "promise.create", head, data: {} }));
  });
  await using it = await listen(server);
  const rules = new ServerRules(new ResonateClient({ url: it.url }), "");
  expect(await rules.armsTargetsOnly()).toBe(armsTargetsOnly);
  expect(asked).toBe(2);
});
