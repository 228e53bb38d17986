// Code that is rolled back must work with tables that newer code has changed, or refuse to use them without losing jobs.

import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, expect, test } from "vitest";
import { startEdge } from "../../cli/launcher/local-edge.ts";
import { currentClient, type McpClient } from "../support/clients.ts";

let data: string;
beforeEach(async () => {
  data = await mkdtemp(join(tmpdir(), "rollback-"));
});
afterEach(() => rm(data, { recursive: true, force: true }));

/** Serves the account for one part of a test. */
async function serve<T>(use: (client: McpClient) => Promise<T>): Promise<T> {
  const bindings = { AUTH_MODE: "none", RATE_LIMIT: "0", WAIT_SECONDS: "45" };
  await using edge = await startEdge({ port: 0, data, bindings });
  await using client = await currentClient.connect(`${edge.url}/mcp`);
  return await use(client);
}

/** Changes the tables of the Resonate object, which must not run, as other code would. */
async function change(sql: string): Promise<void> {
  const files = (await readdir(data, { recursive: true })).filter((name) => /ResonateObject.*\.sqlite$/.test(name));
  const withTables = files.filter((name) => {
    using db = new DatabaseSync(join(data, name));
    return db.prepare("SELECT 1 FROM sqlite_master WHERE name = 'notes'").get() !== undefined;
  });
  expect(withTables).toHaveLength(1);
  using db = new DatabaseSync(join(data, withTables[0] ?? ""));
  db.exec(sql);
}

const SLEEPS = { timer_name: "sleeps over it", seconds: 3_600 };

test("jobs go on with code that is older than the tables; where it must not use the tables, it loses nothing", async () => {
  const first = await serve(async (client) => (await client.callTool("set_timer", SLEEPS)).content);
  await change(`
    CREATE TABLE later (id TEXT PRIMARY KEY, value TEXT) STRICT;
    CREATE INDEX promises_later ON promises (createdAt) WHERE state = 'pending';
    UPDATE notes SET value = '7' WHERE name = 'version'`);
  await serve(async (client) => {
    expect((await client.callTool("get_timer_status", SLEEPS)).content).toMatchObject({ status: "running" });
    const short = await client.callTool("timer", { timer_name: "new", seconds: 1 });
    expect(short.content).toMatchObject({ status: "complete" });
  });

  await change("UPDATE notes SET value = '7' WHERE name = 'serves'");
  await serve(async (client) => {
    const { isError, text } = await client.callTool("timer", { timer_name: "refused", seconds: 1 });
    expect([isError, text]).toEqual([true, expect.stringContaining("No job is lost")]);
  });
  await change("UPDATE notes SET value = '1' WHERE name = 'serves'");
  await serve(async (client) => {
    expect((await client.callTool("set_timer", SLEEPS)).content).toMatchObject({
      fires_at: (first as { fires_at: string }).fires_at,
    });
    expect((await client.callTool("timer", { timer_name: "new", seconds: 1 })).content).toMatchObject({
      status: "complete",
    });
  });
});
