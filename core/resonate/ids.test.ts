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
  isReservationOver,
  isRoot,
  journalEntryId,
  leaseWakeupId,
  limitId,
  limitSlotId,
  listId,
  localId,
  lookId,
  mayBeName,
  pauseId,
  quotaId,
  rootOf,
  splitGeneration,
  splitKey,
  startRecordEnd,
  startRecordId,
  unescapeId,
  unhandledWakeupId,
  withGeneration,
} from "./ids.ts";

const HOUR = 3_600_000;
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
  expect([quotaId(KEY, "24.7.t1"), listId(KEY, "0.1")]).toEqual([`${KEY}quota:24.7.t1`, `${KEY}list:0.1`]);
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

test("a quota's promise is over when its period has ended", () => {
  const now = 1_000 * 24 * HOUR;
  for (const kind of ["t12", "g1", "g40.3"]) {
    expect(isReservationOver(quotaId(`prod/${KEY}`, `24.999.${kind}`), now)).toBe(true);
    expect(isReservationOver(quotaId("", `24.1000.${kind}`), now)).toBe(false);
  }
  for (const id of [journalEntryId("timer_quota", 0), quotaId("", "24.999"), "timer_tea", listId("", "0.7")])
    expect(isReservationOver(id, now)).toBe(false);
});

test("a promise of a limit or a list is told apart from ids that only look alike", () => {
  const limit = limitId("prod/", "archive:1");
  expect(chainLink(limitSlotId(limit, 7, 123))).toMatchObject({ n: 123, isEntry: false });
  expect(chainLink(limitSlotId(limit, 7, 123))?.chain).toBe(limitSlotId(limit, 7, 123).slice(0, -"123".length));
  expect(chainLink(listId("c.", "0.7"))).toEqual({ chain: listId("c.", "0."), n: 7, isEntry: true });
  for (const id of [
    journalEntryId("timer_limit", 0),
    `${limit}7`,
    journalEntryId("timer_list", 0),
    listId("", "begin"),
  ])
    expect(chainLink(id)).toBeUndefined();
});
