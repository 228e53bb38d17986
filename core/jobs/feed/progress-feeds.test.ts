import { expect, test } from "vitest";
import { Simulation } from "../../../testing/simulation/simulation.ts";
import { type Call, ResonateClient } from "../../resonate/connection/client.ts";
import type { PromiseRecord } from "../../resonate/connection/protocol.ts";
import { feedEntryId } from "../../resonate/ids.ts";
import type { FeedEntry } from "./progress-feed.ts";
import { FeedCache, ProgressFeeds } from "./progress-feeds.ts";

/** A client of a server in this process, which counts the requests of each round: those that are sent at once. */
class LocalClient extends ResonateClient {
  readonly sim = new Simulation();
  rounds: number[] = [];
  #isOpen = false;

  constructor() {
    super({ url: "http://127.0.0.1:1" });
  }

  override async call({ kind, data }: Call): Promise<PromiseRecord | undefined> {
    if (!this.#isOpen) {
      this.#isOpen = true;
      this.rounds.push(0);
      setTimeout(() => {
        this.#isOpen = false;
      });
    }
    this.rounds.push((this.rounds.pop() ?? 0) + 1);
    const answer = await this.sim.send(kind, data);
    await new Promise((resolve) => setTimeout(resolve, 1));
    return answer.status === 200 ? (answer.data as { promise: PromiseRecord }).promise : undefined;
  }
}

const saying = (message: string): FeedEntry => ({ message, questions: {} });

/** The job's promise. */
const JOB = { id: "job", createdAt: 1_000 };

async function journalOf(entries: number) {
  const client = new LocalClient();
  const writer = new ProgressFeeds(client);
  const timeoutAt = Date.now() + 60_000;
  for (let n = 1; n <= entries; n++) await writer.write("job", n, saying(String(n)), { timeoutAt });
  client.rounds = [];
  return { client, writer, timeoutAt };
}

/** Numbers of entries, up to those of a job that has reported at every opportunity for a year. */
const ENTRIES = [0, 1, 2, 3, 4, 5, 13, 14, 29, 30, 61, 62, 93, 94, 100, 157, 158, 205, 206, 240, 255];

test.each(ENTRIES)("the newest of %i entries is found in two rounds by a reader that knows none", async (entries) => {
  const { client } = await journalOf(entries);
  expect((await new ProgressFeeds(client).newest(JOB)).n).toBe(entries);
  expect(client.rounds.length).toBeLessThanOrEqual(entries === 0 ? 1 : 2);
  // Few requests for a typical job, and at most a few times as many for any other.
  expect(client.rounds.reduce((sum, each) => sum + each, 0)).toBeLessThanOrEqual(entries < 14 ? 9 + 9 : 9 + 50);
});

test.each([
  [1, 2],
  [16, 2],
  // Beyond the first short list of distances, so the search starts again with the long one.
  [17, 4],
  [250, 4],
])("the newest of %i entries that came within a short while is found in %i rounds", async (entries, rounds) => {
  const { client, writer, timeoutAt } = await journalOf(40);
  const journals = new ProgressFeeds(client);
  await journals.newest(JOB);
  for (let n = 41; n <= 40 + entries; n++) await writer.write("job", n, saying(String(n)), { timeoutAt });
  client.rounds = [];
  expect((await journals.newest(JOB)).n).toBe(40 + entries);
  expect(client.rounds.length).toBeLessThanOrEqual(rounds);
});

test("a job that is started again after another process removed it has a feed of its own", async () => {
  const { client, writer, timeoutAt } = await journalOf(3);
  await writer.newest(JOB);
  client.sim.forget("job");
  const again = { ...JOB, createdAt: JOB.createdAt + 1 };
  expect(await writer.recent(again)).toMatchObject({ n: 0, entry: undefined });
  await writer.write("job", 1, saying("again"), { timeoutAt });
  expect(await writer.newest(again)).toMatchObject({ n: 1, entry: saying("again") });
});

test("the newest entry is found even beyond the number that a job reaches in a year", async () => {
  const { client } = await journalOf(600);
  expect((await new ProgressFeeds(client).newest(JOB)).n).toBe(600);
  expect(client.rounds.length).toBeLessThanOrEqual(6);
});

test("a reader that knows the newest entry needs one request to find that there is no newer one", async () => {
  const { client, writer, timeoutAt } = await journalOf(40);
  const read = new FeedCache();
  await new ProgressFeeds(client, read).newest(JOB);
  client.rounds = [];
  // As in another request of the same isolate.
  const later = new ProgressFeeds(client, read);
  expect(await later.newest(JOB)).toMatchObject({ n: 40, entry: { message: "40" } });
  expect(client.rounds).toEqual([1]);
  await writer.write("job", 41, saying("41"), { timeoutAt });
  client.rounds = [];
  // A caller that looks at many jobs may get an entry that was read up to a second ago.
  expect((await later.recent(JOB)).n).toBe(40);
  expect(client.rounds).toEqual([]);
  expect((await later.newest(JOB)).n).toBe(41);
  expect(client.sim.get(feedEntryId("job", 41))).toBeDefined();
});
