import pino from "pino";
import { beforeEach, expect, test } from "vitest";
import { ResonateClient } from "../../core/resonate/connection/client.ts";
import type { PromiseState } from "../../core/resonate/connection/protocol.ts";
import { RULES_OF_0_9 } from "../../core/resonate/connection/server-rules.ts";
import { Store } from "../../server/engine/store.ts";
import { openDatabase } from "../../server/node/database.ts";
import { NodeSql } from "../../server/node/node-sql.ts";
import { TimedResonate } from "../../server/node/timed-resonate.ts";
import { respondTo } from "../../server/wire/answer.ts";
import { promise } from "../../test/contract/server.ts";
import type { Line } from "./backup-file.ts";
import { moveRows } from "./move-rows.ts";

const VALUE = { data: "Mg==" };

function line(id: string, state: PromiseState, group?: string): Line {
  const { tags, timeoutAt } = promise(id, group === undefined ? {} : { group });
  const texts = { param: "{}", value: JSON.stringify(state === "pending" ? {} : VALUE), tags: JSON.stringify(tags) };
  return { table: "promises", row: { id, state, ...texts, timeoutAt, createdAt: Date.now() } };
}
const LINES = [
  line("step", "resolved"),
  line("job", "resolved", "g"),
  line("runs", "pending", "g"),
  line("asks", "pending"),
];
async function* read() {
  yield* LINES;
}
const MOVED = { ended: 2, pending: 1, running: 1, schedules: 0 };

let store: Store;
let resonate: TimedResonate;
beforeEach(() => {
  store = new Store(new NodeSql(openDatabase(undefined).db));
  resonate = new TimedResonate(store, pino({ level: "silent" }));
  return () => resonate.close();
});

/** A client of the new server. `around` passes requests on to it, or not. */
function client(around: (kind: string, send: () => Promise<Response>) => Promise<Response> = (_kind, send) => send()) {
  return new ResonateClient({
    url: "http://resonate",
    fetch(_url, init) {
      const body = String(init?.body);
      return around(JSON.parse(body).kind, async () => {
        const { status, text } = await respondTo(resonate, new TextEncoder().encode(body), undefined, () => undefined);
        return new Response(text, { status });
      });
    },
  });
}

/** The state of each promise, and of its task if it has one. */
const states = () => Object.fromEntries(LINES.map(({ row: { id } }) => [id, statesOf(String(id))]));
const statesOf = (id: string) => [store.promise(id)?.state, store.task(id)?.state];
const DONE = {
  step: ["resolved", undefined],
  job: ["resolved", "fulfilled"],
  runs: ["pending", "pending"],
  asks: ["pending", undefined],
};

test("a move can be repeated after its end", async () => {
  expect(await moveRows(read, client(), RULES_OF_0_9)).toEqual(MOVED);
  expect(states()).toEqual(DONE);
  expect(await moveRows(read, client(), RULES_OF_0_9)).toEqual(MOVED);
  expect(states()).toEqual(DONE);
});

test("a move that was interrupted just after it had created a job goes on when it is repeated", async () => {
  const refusing = client(async (kind, send) =>
    kind === "task.fulfill" || kind === "promise.settle"
      ? Response.json({ kind, head: { status: 403 }, data: "as if the command had been interrupted" }, { status: 403 })
      : send(),
  );
  await expect(moveRows(read, refusing, RULES_OF_0_9)).rejects.toThrow("interrupted");
  expect(statesOf("job")).toEqual(["pending", "acquired"]);
  await moveRows(read, client(), RULES_OF_0_9);
  expect(states()).toEqual(DONE);
});

test("a move goes on when answers are lost", async () => {
  const lost = new Set<string>();
  const losing = client(async (kind, send) => {
    const answer = await send();
    if (lost.has(kind)) return answer;
    lost.add(kind);
    throw new TypeError("fetch failed");
  });
  expect(await moveRows(read, losing, RULES_OF_0_9)).toEqual(MOVED);
  expect(states()).toEqual(DONE);
});

test("a job of the new server that a worker executes stays as it is", async () => {
  const data = { ...promise("job", { group: "g" }), param: {} };
  await client().send("task.create", { pid: "worker", ttl: 60_000, action: { kind: "promise.create", data } });
  expect(await moveRows(read, client(), RULES_OF_0_9)).toEqual(MOVED);
  expect(statesOf("job")).toEqual(["pending", "acquired"]);
});
