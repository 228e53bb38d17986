import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { anyCharacter } from "../../test/support/any-character.ts";
import {
  callerKey,
  chainLink,
  chunkId,
  claimId,
  cleanUpId,
  escapeId,
  executionMarkId,
  feedEntryId,
  idsFrom,
  isChildOf,
  isRoot,
  journalEntryId,
  leaseWakeupId,
  limitId,
  limitSlotId,
  localId,
  lookId,
  mayBeName,
  pauseId,
  recordMarkId,
  rootOf,
  splitGeneration,
  splitKey,
  startRecordEnd,
  startRecordId,
  unescapeId,
  unhandledWakeupId,
  withGeneration,
} from "./ids.ts";

const KEY = callerKey("0123456789abcd-_");
const text = fc.string({ unit: anyCharacter });

test("the spelling of ids never changes, as existing deployments have stored them", () => {
  const job = "prod/c0123456789abcd-_.timer_tea~2";
  expect(`prod/${KEY}${withGeneration("timer_tea", 2)}`).toBe(job);
  expect(
    [
      journalEntryId(job, 1),
      feedEntryId(job, 2),
      lookId(job, 3, 4),
      executionMarkId(job, 5),
      leaseWakeupId(job, 6),
      leaseWakeupId(job, 6, 1),
      unhandledWakeupId(job, 7),
      cleanUpId(job),
      chunkId(job, "abc", 8),
      claimId(job, 9),
      startRecordId(job, KEY),
    ].map((id) => id.slice(job.length)),
  ).toEqual([":e1", ":u2", ":w3.4", ":l5", ":n6", ":n6.1", ":b7", ":x", ":pabc.8", ":c9", `:r${KEY}`]);
  expect([pauseId("prod/", "timer", 1), limitSlotId(limitId("prod/", "a:b"), 2, 3)]).toEqual([
    "prod/paused:timer.1",
    "prod/limit:a%3Ab:2.3",
  ]);
  expect(recordMarkId(KEY)).toBe(`${KEY}record:begun`);
});

describe("a job's id", () => {
  const job = `prod/${KEY}${withGeneration("timer_tea", 2)}`;

  test("is told apart from the ids of its children", () => {
    expect([isRoot(job), rootOf(job)]).toEqual([true, job]);
    for (const child of [journalEntryId(job, 1), cleanUpId(job), startRecordId(job, KEY)]) {
      expect([isRoot(child), rootOf(child), isChildOf(job, child)]).toEqual([false, job, true]);
      expect(isChildOf(`${job}2`, child)).toBe(false);
    }
    expect(startRecordId(job, KEY).endsWith(startRecordEnd(KEY))).toBe(true);
  });

  test("consists of namespace, caller and name", () => {
    const name = withGeneration("timer_tea", 2);
    expect(splitKey(localId(job, "prod/"))).toEqual({ key: KEY, name });
    expect(splitKey(name)).toEqual({ key: "", name });
    expect(localId(job, "test/")).toBe(job);
  });

  test("lies between the bounds of its prefix, and an id with another prefix does not", () => {
    fc.assert(
      fc.property(text, (rest) => {
        const [from, to] = idsFrom(`prod/${KEY}`);
        const id = `prod/${KEY}${rest}`;
        expect([from <= id, id < to]).toEqual([true, true]);
        expect(`prod/${callerKey("0123456789abcd-a")}${rest}` < to).toBe(false);
      }),
    );
  });
});

test("every escaped text leads back to its origin", () => {
  const escapes = fc.stringMatching(/^([%~: 0-9au]|3A|%253A|%7e|%20|%a0|%u2028|\u3000)*$/);
  fc.assert(
    fc.property(fc.oneof(text, escapes), (one) => {
      expect(unescapeId(escapeId(one))).toBe(one);
    }),
  );
});

test("every escaped text may be a name, and different texts stay different", () => {
  fc.assert(
    fc.property(text, text, (one, other) => {
      expect(mayBeName(escapeId(one))).toBe(true);
      expect(escapeId(one) === escapeId(other)).toBe(one === other);
    }),
  );
});

test.each(["tea", "tea~", "~2", "tea~1", "tea~02"])("%s has no generation", (name) => {
  expect(splitGeneration(name)).toEqual({ base: name, generation: 1 });
});

test("a promise of a limit is told apart from ids that only look alike", () => {
  const limit = limitId("prod/", "archive:1");
  const slot = limitSlotId(limit, 7, 123);
  expect(chainLink(slot)).toEqual({ chain: slot.slice(0, -"123".length), n: 123 });
  for (const id of [journalEntryId("timer_limit", 0), `${limit}7`, recordMarkId("")])
    expect(chainLink(id)).toBeUndefined();
});
