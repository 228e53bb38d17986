// Code does not use tables of another schema version, and loses no job by that.

import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, expect, test } from "vitest";
import { startEdge } from "../../cli/launcher/local-edge.ts";
import { currentClient, type McpClient } from "../support/clients.ts";

let data: string;
beforeEach(async () => {
  data = await mkdtemp(join(tmpdir(), "schema-version-"));
});
afterEach(() => rm(data, { recursive: true, force: true }));

/** Serves the account for one part of a test. */
async function serve<T>(use: (client: McpClient) => Promise<T>): Promise<T> {
  const bindings = { AUTH_MODE: "none", RATE_LIMIT: "0", WAIT_SECONDS: "45" };
  await using edge = await startEdge({ port: 0, data, bindings });
  await using client = await currentClient.connect(`${edge.url}/mcp`);
  return await use(client);
}

/** Sets the version of the Resonate object's tables, which must not run, as other code would. */
async function setVersion(version: number): Promise<void> {
  const files = (await readdir(data, { recursive: true })).filter((name) => /ResonateObject.*\.sqlite$/.test(name));
  const withTables = files.filter((name) => {
    using db = new DatabaseSync(join(data, name));
    return db.prepare("SELECT 1 FROM sqlite_master WHERE name = 'schemas'").get() !== undefined;
  });
  expect(withTables).toHaveLength(1);
  using db = new DatabaseSync(join(data, withTables[0] ?? ""));
  db.exec(`UPDATE schemas SET version = ${version}`);
}

const SLEEPS = { timer_name: "sleeps over it", seconds: 3_600 };

test("code for another schema version refuses calls, and jobs go on with code for their version", async () => {
  const first = await serve(async (client) => {
    const short = await client.callTool("timer", { timer_name: "short", seconds: 1 });
    expect(short.content).toMatchObject({ status: "complete" });
    return (await client.callTool("set_timer", SLEEPS)).content;
  });
  await setVersion(7);
  await serve(async (client) => {
    const { isError, text } = await client.callTool("timer", { timer_name: "refused", seconds: 1 });
    expect([isError, text]).toEqual([true, expect.stringContaining("No job is lost")]);
  });
  await setVersion(1);
  await serve(async (client) => {
    expect((await client.callTool("set_timer", SLEEPS)).content).toMatchObject({
      fires_at: (first as { fires_at: string }).fires_at,
    });
    expect((await client.callTool("timer", { timer_name: "short", seconds: 1 })).content).toMatchObject({
      status: "complete",
    });
  });
});
