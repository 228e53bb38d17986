// Sends random requests to the embedded server in a process, to the one in a Durable Object and, with RESONATE_URL, to that
// server: their answers must be the same, except for the differences in docs/resonate.md. No time-out falls due here, so that
// clocks do not matter; `standalone-differential.test.ts` compares time-outs.

import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { MemoryState } from "../../server/engine/memory-state.ts";
import type { Operation } from "../../server/engine/records.ts";
import { carryOut } from "../../server/engine/state-machine.ts";
import { run, until } from "../../testing/stack/program.ts";
import { connectTo, releaseOf, type Server, unique } from "../contract/server.ts";
import { acceptedBy010, anyRequest, type RequestMaker } from "./histories.ts";

/** Requests about schedules, whose next runs depend on the time. */
const EXCLUDED_KINDS = /^schedule\./;
const HOUR_MS = 3_600_000;
/** The same histories each time, others with `DIFFERENTIAL_SEED`, and more with `FUZZ_TIMES`. */
const SEED = Number(process.env.DIFFERENTIAL_SEED ?? 14);
const RUNS = 15 * Number(process.env.FUZZ_TIMES ?? 1);
const HISTORY_LENGTH = 60;

const hosts = new Map<string, Server>();
let isFor010 = false;
beforeAll(async () => {
  for (const [name, program] of [
    ["process", "server/node/process.ts"],
    ["object", "test/support/object/object-process.ts"],
  ] as const) {
    const host = run(program, { args: ["--port", "0", "--memory"] });
    const ready = await until(`the ${name}`, () => host.logs().find(({ msg }) => msg === "ready"));
    hosts.set(
      name,
      connectTo(String(ready.url), async () => host[Symbol.asyncDispose]()),
    );
  }
  const standaloneUrl = process.env.RESONATE_URL;
  if (!standaloneUrl) return;
  const server = connectTo(standaloneUrl, async () => {});
  hosts.set("standalone", server);
  isFor010 = (await releaseOf(server)) === "0.10";
});
afterAll(() => Promise.all([...hosts.values()].map((host) => host[Symbol.asyncDispose]())));

test("the hosts answer alike", { timeout: 300_000 }, async () => {
  const outcomes = new Set<string>();
  await fc.assert(
    fc.asyncProperty(
      fc.array(anyRequest, { minLength: HISTORY_LENGTH, maxLength: HISTORY_LENGTH }),
      async (history) => {
        await sideBySide(history, outcomes);
      },
    ),
    { seed: SEED, numRuns: RUNS, endOnFailure: true },
  );
  for (const deep of ["task.acquire 200", "task.suspend 200", "task.fulfill 200", "task.fence 200", "task.acquire 409"])
    expect([...outcomes]).toContain(deep);
});

/** Sends the same requests to every host. A state in memory supplies the versions in them. */
async function sideBySide(history: readonly RequestMaker[], outcomes: Set<string>): Promise<void> {
  const prefix = unique("d");
  const now = Date.now();
  const memory = new MemoryState();
  for (const makeRequest of history) {
    const timelessRequest = timeless(makeRequest(now, memory), now);
    const request = isFor010 ? acceptedBy010(timelessRequest, now) : timelessRequest;
    if (!request || EXCLUDED_KINDS.test(request.kind)) continue;
    carryOut(memory, now, structuredClone(request));
    const { kind, data } = renamed(request, prefix);
    const answers = new Map<string, unknown>();
    for (const [name, host] of hosts) {
      const answer = await host.call(kind, data);
      outcomes.add(`${kind} ${answer.status}`);
      answers.set(name, comparable(answer));
    }
    const [first, ...others] = [...answers];
    for (const [name, answer] of others) {
      expect(answer, `${name}, beside ${first?.[0]}: ${kind} ${JSON.stringify(data)}`).toEqual(first?.[1]);
    }
  }
}

/** The request with all times long past or far ahead. */
function timeless(request: Operation, now: number): Operation {
  return JSON.parse(JSON.stringify(request), (key, value) => {
    if (key === "timeoutAt") return value <= now ? 1_000 : now + HOUR_MS;
    if (key === "ttl") return HOUR_MS;
    return key === "resonate:delay" ? undefined : value;
  });
}

/** The request with ids that only this history has. */
function renamed(request: Operation, prefix: string): Operation {
  return JSON.parse(JSON.stringify(request), (key, value) => {
    if (typeof value !== "string") return value;
    if (["id", "awaited", "awaiter", "resonate:branch"].includes(key)) return `${prefix}${value}`;
    return key === "resonate:target" || key === "address" ? value.replace("@", `@${prefix}`) : value;
  });
}

/** The part of an answer that is the same on every host. Reasons and times differ. */
function comparable({ status, data }: { status: number; data: unknown }): unknown {
  if (status >= 400) return { status };
  const same = JSON.parse(JSON.stringify(data ?? {}), function (this: object, key, value) {
    if (["createdAt", "settledAt"].includes(key)) return value > 1_000 ? "now" : value;
    // On the embedded server, a fence does not preload its branch, and its action has the head of its request.
    return key === "head" || (key === "preload" && "action" in this) ? undefined : value;
  });
  return { status, data: same };
}
