// Waiting jobs take no memory in the object: 100,000 unclaimed jobs, in workerd, which has 128 MB on the platform.

import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, expect, test } from "vitest";
import { freePort } from "../../testing/stack/port.ts";
import { run, until } from "../../testing/stack/program.ts";
import { connectTo, promise } from "../contract/server.ts";
import { inspectHeap } from "../support/heap.ts";

const COUNT = 100_000;

let data: string;
beforeEach(async () => {
  data = await mkdtemp(join(tmpdir(), "object-"));
});
afterEach(() => rm(data, { recursive: true, force: true }));

async function start(inspectorPort: number) {
  const args = ["--data", data, "--inspector-port", String(inspectorPort)];
  const program = run("test/support/object/object-process.ts", { args });
  const ready = await until("the object", () => program.logs().find(({ msg }) => msg === "ready"));
  return { program, server: connectTo(String(ready.url), async () => program[Symbol.asyncDispose]()) };
}

/** Replaces the one stored job with `COUNT` copies. */
async function multiply(): Promise<void> {
  const [file] = (await readdir(data, { recursive: true })).filter((name) => name.endsWith(".sqlite"));
  using db = new DatabaseSync(join(data, file ?? expect.fail("the object has a file")));
  const copies = `WITH RECURSIVE copy(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM copy WHERE n < ${COUNT})`;
  db.exec(`BEGIN;
    ${copies} INSERT INTO promises SELECT printf('job%06d', n), state, param, value, tags, NULL, timeoutAt, createdAt, settledAt, timer
      FROM promises, copy WHERE id = 'job';
    ${copies} INSERT INTO tasks SELECT printf('job%06d', n), state, version, pid, ttl, resumes, timer + 600000 + n, timer_type, offered_to
      FROM tasks, copy WHERE id = 'job';
    DELETE FROM promises WHERE id = 'job'; DELETE FROM tasks WHERE id = 'job';
    COMMIT;`);
}

test("100,000 unclaimed jobs wait, and are handed over, in a heap of a few megabytes", async () => {
  {
    const { server } = await start(await freePort());
    const job = promise("job", { group: "g", timeoutAt: Date.now() + 86_400_000 });
    await server.call("promise.create", { ...job, param: { data: "cGFyYW0=".repeat(64) } });
    await server[Symbol.asyncDispose]();
  }
  await multiply();
  const inspectorPort = await freePort();
  const { server } = await start(inspectorPort);
  await using _ = server;
  await server.call("promise.get", { id: "job000001" });
  using heap = await inspectHeap(inspectorPort);
  const used = async () => {
    const [size] = await Promise.all([heap.used(), server.call("promise.get", { id: "job000001" })]);
    return size;
  };
  const sizes = [await used()];
  {
    // A worker that claims nothing is offered only as many tasks as one connection may have.
    using idle = await server.poll("g", "idle");
    // Tasks may be offered again when they are due again, so distinct ones are counted.
    const got = () => new Set(idle.inbox.map(({ data }) => data.task.id)).size;
    await until("what one may have", () => got() >= 10_000, 60_000);
    sizes.push(await used());
    expect(got()).toBe(10_000);
  }
  using worker = await server.poll("g", "worker");
  const claimed = new Set<string>();
  while (claimed.size < 500) {
    const { data } = await worker.next(30_000);
    const { id, version } = data.task;
    if (claimed.has(id)) continue;
    expect((await server.call("task.acquire", { id, version, pid: "p", ttl: 60_000 })).status).toBe(200);
    claimed.add(id);
  }
  sizes.push(await used());
  console.log(`heap with ${COUNT} unclaimed jobs: ${sizes.map((size) => size.toFixed(1)).join(", ")} MB`);
  expect(Math.max(...sizes)).toBeLessThan(40);
});
