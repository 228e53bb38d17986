/** Backups contain callers' events and web hooks. */
import { mkdir, mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { execa } from "execa";
import { expect, test } from "vitest";
import { startEdge } from "../../cli/launcher/local-edge.ts";
import { newToken } from "../../cli/static-token.ts";
import { until } from "../../testing/stack/program.ts";
import { bearer, bearerBindings } from "../auth/support.ts";
import { newSecret, startReceiver } from "./receiver.ts";
import { eventsAt, streamAt } from "./support.ts";

const TOKENS = { ada: "static-token-of-ada", bob: "static-token-of-bob" };
const ENDED = { name: "job.ended" };
const operator = newToken();

test("a restore brings back events and web hooks, with older cursors truncated, but not those of a forgotten caller", async () => {
  const dir = await mkdtemp(join(tmpdir(), "caller-rows-"));
  const start = async (name: string) => {
    const data = join(dir, name);
    await mkdir(data, { recursive: true });
    const OPERATOR_TOKENS = JSON.stringify([{ name: "op", sha256: operator.sha256 }]);
    const own = { RATE_LIMIT: "0", RESONATE_PUBLIC: "1", ALLOW_LOOPBACK_CALLBACKS: "1", OPERATOR_TOKENS };
    return startEdge({ port: 0, data, bindings: { ...bearerBindings(TOKENS), ...own } });
  };
  const command = async (...args: string[]) => {
    const env = { OPERATOR_TOKEN: operator.token, RESONATE_URL: "", RESONATE_TOKEN: "" };
    const ran = await execa(process.execPath, ["cli/main.ts", ...args], { env, all: true, reject: false });
    expect([ran.exitCode, ran.all]).toEqual([0, expect.any(String)]);
    return ran.all;
  };
  const timer = (timer_name: string) => ["set_timer", { timer_name, seconds: 1 }] as const;
  const [first, again] = [join(dir, "first.ndjson"), join(dir, "again.ndjson")];
  await using receiver = await startReceiver(newSecret());
  const { url, secret, delivered } = receiver;
  let cursor: string | null;
  {
    await using edge = await start("first");
    await using ada = await eventsAt(`${edge.url}/mcp`, TOKENS.ada);
    await using bob = await eventsAt(`${edge.url}/mcp`, TOKENS.bob);
    await bob.start(...timer("bobs"));
    ({ cursor } = await ada.poll({ ...ENDED, cursor: null }));
    await ada.request("events/subscribe", { ...ENDED, delivery: { mode: "webhook", url, secret } });
    await ada.start(...timer("before"));
    await until("the delivery", () => delivered.length === 1, 60_000);
    expect(await ada.poll({ ...ENDED, cursor })).toMatchObject({ truncated: false, events: [{}] });
    expect((await fetch(`${edge.url}/operate/callers`)).status).toBe(401);
    await command("backup", "--url", edge.url, "--out", first);
    const actives: unknown[] = [];
    const leave = new AbortController();
    const listen = async () => {
      for await (const { method, params } of streamAt(`${edge.url}/mcp`, ENDED, leave.signal, TOKENS.bob))
        if (method === "notifications/events/active") actives.push(params.truncated);
    };
    const listening = listen().catch(() => {});
    await until("the stream", () => actives.length === 1);
    await command("forget", "bob", "--url", edge.url, "--apply");
    await command("backup", "--url", edge.url, "--out", again);
    // A command makes several requests, and is one entry.
    const auditLog = await fetch(`${edge.url}/operate/audit-log`, { headers: bearer(operator.token) });
    const { entries } = (await auditLog.json()) as { entries: { who: string; what: string; about: object }[] };
    expect(entries.map(({ who, what, about }) => [who, what, about])).toEqual([
      ["op", "backup", {}],
      ["op", "forget", { caller: "bob" }],
      ["op", "backup", {}],
    ]);
    await until("the stream to begin again", () => actives.length > 1, 45_000);
    expect(actives).toEqual([false, true]);
    leave.abort();
    await listening;
  }
  const rooms = async (file: string) =>
    new Set((await readFile(file, "utf8")).split("\n").flatMap((line) => /"caller":"(.*?)"/.exec(line)?.[1] ?? []));
  expect([(await rooms(first)).size, (await rooms(again)).size]).toEqual([2, 1]);

  // Restores to a local folder first, and from there to the second deployment.
  await command("restore", "--from", again, "--data", join(dir, "machine"));
  await command("backup", "--data", join(dir, "machine"), "--out", first);
  await using edge = await start("second");
  await command("restore", "--from", first, "--url", edge.url);
  const auditLog = await fetch(`${edge.url}/operate/audit-log`, { headers: bearer(operator.token) });
  expect(await auditLog.json()).toMatchObject({ entries: [{ who: "op", what: "restore" }] });
  await using ada = await eventsAt(`${edge.url}/mcp`, TOKENS.ada);
  const page = await ada.poll({ ...ENDED, cursor });
  expect(page).toMatchObject({ truncated: true, events: [{ eventId: "ended_timer_before" }] });
  expect(await ada.poll({ ...ENDED, cursor: page.cursor })).toMatchObject({ truncated: false, events: [] });
  await until("the gap", () => delivered.some(({ body }) => body.type === "gap"), 60_000);
  await ada.start(...timer("after"));
  await until("the delivery", () => delivered.some(({ id }) => id === "ended_timer_after"), 60_000);
  expect(receiver.forged).toEqual([]);
  expect(delivered.filter(({ id }) => id === "ended_timer_before")).toHaveLength(1);
  await rm(dir, { recursive: true, force: true });
});
