/** `observe`: the requests that Resonate's observability pages make, answered from a server that speaks today's protocol. */

import { afterAll, beforeAll, expect, test } from "vitest";
import { journalEntryId } from "../../core/store/ids.ts";
import { type Program, run, until } from "../../testing/program.ts";
import { type Resonate, startResonate } from "../support/resonate.ts";

const NAMESPACE = "prod/";
const id = `${NAMESPACE}timer_tea`;

let resonate: Resonate;
let program: Program;
let url: string;
beforeAll(async () => {
  resonate = await startResonate({ own: true, token: "a secret" });
  await resonate.start({ id, func: "timer", args: {} });
  const step = { "resonate:origin": id, "resonate:parent": id, "resonate:branch": id };
  await resonate.call("promise.create", {
    id: journalEntryId(id, 1),
    timeoutAt: Date.now() + 60_000,
    param: {},
    tags: step,
  });
  await resonate.call("promise.settle", { id: journalEntryId(id, 1), state: "rejected", value: {} });
  await resonate.start({ id: "test/timer_tea", func: "timer", args: {} });
  const env = { ...resonate.env, RESONATE_NAMESPACE: NAMESPACE };
  program = run("cli/main.ts", { args: ["observe", "--port", "0"], env });
  url = await until("it to listen", () => /^(http:\S+) shows /m.exec(program.output())?.[1]);
});
afterAll(async () => {
  await program?.[Symbol.asyncDispose]();
  await resonate?.[Symbol.asyncDispose]();
});

async function get(path: string, headers: Record<string, string> = {}) {
  const response = await fetch(url + path, { headers });
  return { status: response.status, body: await response.json() };
}
const idsOf = ({ body }: Awaited<ReturnType<typeof get>>) => body.promises.map((promise: { id: string }) => promise.id);

test("finds promises of the namespace by pattern, state and tags, newest or oldest first, page by page", async () => {
  expect(idsOf(await get("/promises?id=*&limit=100"))).toEqual([id, journalEntryId(id, 1)]);
  expect(idsOf(await get("/promises?id=*tea&state=pending"))).toEqual([id]);
  expect(idsOf(await get("/promises?id=*&state=rejected"))).toEqual([journalEntryId(id, 1)]);
  const tree = `tags[resonate:origin]=${encodeURIComponent(id)}`;
  expect(idsOf(await get(`/promises?id=*&${tree}`))).toEqual([id, journalEntryId(id, 1)]);
  const first = await get("/promises?id=*&limit=1&sortId=1");
  expect(idsOf(first)).toEqual([id]);
  const last = await get(`/promises?id=*&limit=1&sortId=1&cursor=${first.body.cursor}`);
  expect([idsOf(last), last.body.cursor]).toEqual([[journalEntryId(id, 1)], undefined]);
});

test("shows one as the earlier protocol did", async () => {
  const { body } = await get(`/promises/${encodeURIComponent(journalEntryId(id, 1))}`);
  const tags = { "resonate:parent": id };
  expect(body).toMatchObject({ id: journalEntryId(id, 1), state: "REJECTED", tags, timeout: expect.any(Number) });
  expect(body.completedOn).toBeGreaterThanOrEqual(body.createdOn);
  // The pages' own server takes apart what was encoded.
  expect((await get(`/promises/${id}`)).body).toMatchObject({ id, state: "PENDING" });
  expect((await get("/promises/test/timer_tea")).status).toBe(404);
  expect(await get("/schedules?id=*&limit=50")).toEqual({ status: 200, body: { schedules: [] } });
});

test("answers no web page, and says in words why it cannot answer", async () => {
  expect((await get("/promises", { origin: "https://evil.example" })).status).toBe(403);
  const env = { ...resonate.env, RESONATE_TOKEN: "another" };
  await using other = run("cli/main.ts", { args: ["observe", "--port", "0"], env });
  const at = await until("it to listen", () => /^(http:\S+) shows /m.exec(other.output())?.[1]);
  const response = await fetch(`${at}/promises`);
  expect([response.status, await response.json()]).toEqual([
    502,
    { error: expect.stringContaining("does not know the token in RESONATE_TOKEN") },
  ]);
});
