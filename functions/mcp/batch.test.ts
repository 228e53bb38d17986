import { expect, test } from "vitest";
import type { RequestScope } from "../http/scope.ts";
import { serveBatch } from "./batch.ts";

test("a batch's call that waits learns that its caller is blocked meanwhile", async () => {
  let until = Number.POSITIVE_INFINITY;
  const scope = {
    line: { member: () => ({ answered() {} }) },
    get until() {
      return until;
    },
    admit: async () => undefined,
  } as unknown as RequestScope;
  const message = { jsonrpc: "2.0", id: 1, method: "tools/call" };
  const response = await serveBatch([message], 1, new Headers(), scope, {
    demandOf: () => ({ weight: 1, access: [], streams: true }),
    async answer(_member, _message, _demand, own) {
      until = 0;
      return Response.json({ id: 1, result: own.until });
    },
  });
  expect(await response.json()).toEqual([{ id: 1, result: 0 }]);
});
