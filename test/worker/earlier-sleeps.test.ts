/**
 * Jobs that sleep since before this version: their sleeps are addressed to a group that nobody is of, and the server offers
 * them again and again until they are over, which may take a year. An operator ends that once.
 */
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { run, until } from "../../testing/program.ts";
import { ownGroup, startWorker } from "../../testing/worker-process.ts";
import { action, type Poll, promise, type Server, startServer, unique } from "../contract/server.ts";
import { resonateAt } from "../support/resonate.ts";

// The embedded server offers again after half a minute.
vi.setConfig({ testTimeout: 150_000 });

/** What the client library of the versions before addressed its sleeps to. */
const NOBODY = "default";

/** For long enough that the command has ended, on however slow a machine, when the next one is due; in milliseconds. */
const SOON = 20_000;

let server: Server;
beforeAll(async () => {
  server = await startServer();
});
afterAll(() => server?.[Symbol.asyncDispose]());

/** A timer as the version before left it: its worker had slept, and was ended. Returns the id of its sleep. */
async function asleep(id: string, group: string, due: number): Promise<string> {
  const resonate = resonateAt(server.url, undefined, process.env.RESONATE_TOKEN);
  const args = { timer_name: id.slice(id.indexOf("timer_") + 6), fires_at: new Date(due).toISOString() };
  await resonate.start({ id, func: "timer", args, group, timeoutAt: due + 60_000 });
  const pid = "the worker before";
  expect(await server.call("task.acquire", { id, version: 0, pid, ttl: 60_000 })).toMatchObject({ status: 200 });
  const sleep = `${id}:0`;
  const tags = {
    "resonate:origin": id,
    "resonate:branch": sleep,
    "resonate:parent": id,
    "resonate:scope": "global",
    "resonate:target": `poll://any@${NOBODY}`,
    "resonate:timer": "true",
  };
  const held = { id, version: 1 };
  const create = action("promise.create", { id: sleep, timeoutAt: due, param: {}, tags });
  expect(await server.call("task.fence", { ...held, action: create })).toMatchObject({ status: 200 });
  const actions = [action("promise.register_callback", { awaiter: id, awaited: sleep })];
  expect(await server.call("task.suspend", { ...held, actions })).toMatchObject({ status: 200 });
  return sleep;
}

/** A timer of another program, which sleeps as long. */
async function foreign(id: string, due: number): Promise<string> {
  await server.call(
    "promise.create",
    promise(id, { group: NOBODY, timeoutAt: due, tags: { "resonate:timer": "true" } }),
  );
  return id;
}

const offers = ({ inbox }: Poll, id: string) => inbox.filter(({ data }) => data.task?.id === id).length;
const stateOf = async (id: string) => (await server.call("task.get", { id })).data.task.state;

test("what earlier versions sleep on is offered no more, and still wakes its job", async () => {
  const { group, namespace, env } = ownGroup();
  const other = ownGroup();
  const settings = { RESONATE_URL: server.url, RESONATE_TOKEN: process.env.RESONATE_TOKEN ?? "", ...env };
  const quiet = async () => {
    await using program = run("cli/main.ts", { args: ["quiet"], env: settings });
    expect(await program.exited).toMatchObject({ exitCode: 0 });
    return program.output();
  };
  using poll = await server.poll(NOBODY, unique("nobody"));
  const year = Date.now() + 365 * 24 * 3_600_000;
  const soon = Date.now() + SOON;
  const far = await asleep(`${namespace}timer_far`, group, year);
  const near = await asleep(`${namespace}timer_near`, group, soon);
  // Its job was cancelled; its sleep goes on, and so do the offers.
  const left = await asleep(`${namespace}timer_left`, group, year);
  await server.call("promise.settle", { id: `${namespace}timer_left`, state: "rejected_canceled", value: {} });
  // What is not this deployment's is not touched.
  const theirs = await asleep(`${other.namespace}timer_far`, other.group, year);
  const program = await foreign(`${namespace}${unique("program")}`, year);
  const all = [far, near, left, theirs, program];
  await until("each to be offered", () => all.every((id) => offers(poll, id) > 0) || undefined);

  expect(await quiet()).toBe("3 sleeps of earlier versions are offered no more.\n");
  expect(await Promise.all(all.map(stateOf))).toEqual(["halted", "halted", "halted", "pending", "pending"]);
  // Again is as well as once.
  expect(await quiet()).toBe("0 sleeps of earlier versions are offered no more.\n");
  const before = new Map(all.map((id) => [id, offers(poll, id)]));

  await using _worker = await startWorker(settings);
  const resonate = resonateAt(server.url, undefined, process.env.RESONATE_TOKEN);
  expect(await resonate.settled(`${namespace}timer_near`, 60_000)).toMatchObject({
    state: "resolved",
    value: { data: "complete" },
  });
  const more = (id: string) => offers(poll, id) - (before.get(id) ?? 0);
  await until("the others' to be offered again", () => (more(theirs) > 0 && more(program) > 0) || undefined, 60_000);
  expect([far, near, left].map(more)).toEqual([0, 0, 0]);
  expect(await stateOf(near)).toBe("fulfilled");
});
