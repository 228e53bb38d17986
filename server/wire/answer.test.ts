import pino from "pino";
import { afterEach, expect, test } from "vitest";
import { NDJSON } from "../../core/resonate/connection/protocol.ts";
import { promise } from "../../test/contract/server.ts";
import { Store } from "../engine/store.ts";
import { openDatabase } from "../node/database.ts";
import { NodeSql } from "../node/node-sql.ts";
import { TimedResonate } from "../node/timed-resonate.ts";
import { respondTo } from "./answer.ts";

const store = new Store(new NodeSql(openDatabase(undefined).db));
const resonate = new TimedResonate(store, pino({ level: "silent" }));
afterEach(() => resonate.close());

test("a batch with one wrong token is refused as a whole, with a single answer", async () => {
  const body = ["right", "wrong", "right"].map((auth, n) =>
    JSON.stringify({
      kind: "promise.create",
      head: { corrId: "1", version: "2026-04-01", auth },
      data: promise(`p${n}`),
    }),
  );
  const ask = (lines: string[]) =>
    respondTo(resonate, Buffer.from(lines.join("\n")), NDJSON, (auth) => (auth === "right" ? undefined : 401));
  const refused = await ask(body);
  expect(refused.status).toBe(401);
  expect(refused.text).not.toContain("\n");
  expect(store.has("p0")).toBe(false);
  expect((await ask([body[0] as string])).status).toBe(200);
  expect(store.has("p0")).toBe(true);
});
