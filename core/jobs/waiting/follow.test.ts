import { expect, test } from "vitest";
import type { Channel } from "../../resonate/connection/connections.ts";
import { pause } from "../../resonate/pacing/backoff.ts";
import { followPromises, type Subscriber } from "./follow.ts";

type Push = (news: string) => void;

/** Subscribes to a server that opens connections as `open` does, and returns what happened until it was `enough`. */
async function follow(
  open: (push: Push, signal: AbortSignal) => Promise<Channel>,
  subscriber: Partial<Subscriber<string, Channel>>,
  enough: (happened: string[]) => boolean,
): Promise<string[]> {
  const happened: string[] = [];
  const over = new AbortController();
  const note = (what: string) => {
    happened.push(what);
    if (enough(happened)) over.abort();
  };
  await followPromises<string, Channel>(
    {
      open,
      ...subscriber,
      check: async (channel) => {
        note(channel ? "listened" : "read");
        await subscriber.check?.(channel);
      },
      onNews: async (news, channel) => {
        note(`told ${news}`);
        await subscriber.onNews?.(news, channel);
      },
    },
    over.signal,
  );
  return happened;
}

const count = (what: string, n: number) => (happened: string[]) => happened.filter((each) => each === what).length >= n;
const open = (signal: AbortSignal, lasting = 60_000): Channel => ({
  address: "poll://uni@edge/1",
  closed: pause(lasting, signal).then(() => undefined),
});
const silent = (_push: Push, signal: AbortSignal) => pause(60_000, signal).then(() => Promise.reject(signal.reason));

test("while a connection does not open, the promises are read again and again", async () => {
  expect(await follow(silent, {}, count("read", 2))).toEqual(["read", "read"]);
});

test("a connection that opens late is used", async () => {
  const late = (_push: Push, signal: AbortSignal) => pause(800, signal).then(() => open(signal));
  expect(await follow(late, {}, count("listened", 1))).toEqual(["read", "listened"]);
});

test("while a connection is silent, the promises are looked at again and again", async () => {
  const happened = await follow(async (_push, signal) => open(signal), { maxSilenceMs: 50 }, count("listened", 4));
  expect(happened).toEqual(["listened", "listened", "listened", "listened"]);
});

test("news is passed on as it comes, and looks that find nothing new do not stop it", async () => {
  const pushing = async (push: Push, signal: AbortSignal) => {
    let told = 0;
    const timer = setInterval(() => (++told > 3 ? clearInterval(timer) : push("tea")), 40);
    return open(signal);
  };
  const happened = await follow(pushing, { maxSilenceMs: 100 }, count("listened", 2));
  expect(happened.filter((each) => each !== "listened")).toEqual(["told tea", "told tea", "told tea"]);
});

test("a connection that ends is opened again, and everything is looked at again", async () => {
  let opened = 0;
  const ending = async (_push: Push, signal: AbortSignal) => open(signal, ++opened < 3 ? 0 : 60_000);
  expect(await follow(ending, {}, count("listened", 3))).toEqual(["listened", "listened", "listened"]);
});

test.each([
  [
    "the listeners",
    { check: async (channel?: Channel) => void (channel && (await Promise.reject(new Error("lost")))) },
  ],
  ["handlers of news", { onNews: () => Promise.reject(new Error("lost")) }],
])(
  "when %s fail, the connection is closed, the promises are read, and another connection is opened",
  async (_what, failing) => {
    const signals: AbortSignal[] = [];
    const pushing = async (push: Push, signal: AbortSignal) => {
      signals.push(signal);
      setTimeout(() => push("tea"), 20);
      return open(signal);
    };
    await follow(pushing, failing, (happened) => count("read", 2)(happened));
    expect(signals.map(({ aborted }) => aborted)).toEqual([true, true]);
  },
);
