import { expect, test } from "vitest";
import { chainLink, endOf, isLandmark, isReservationOver } from "./bookkeeping.ts";

const HOUR = 3_600_000;

test("a reservation is over when its period is", () => {
  const now = 1_000 * 24 * HOUR;
  expect(isReservationOver("prod/c0123456789abcdef.quota:24.999.t7", now)).toBe(true);
  for (const id of ["t12", "g1", "g40.3"]) expect(isReservationOver(`quota:24.999.${id}`, now)).toBe(true);
  expect(isReservationOver("quota:24.1000.t7", now)).toBe(false);
  for (const id of ["timer_quota:e0", "quota:24.999", "timer_tea", "list:0.7"])
    expect(isReservationOver(id, now)).toBe(false);
});

test("a link is told from what only looks like one", () => {
  expect(chainLink("prod/limit:archive%3A1:7.123")).toEqual({
    chain: "prod/limit:archive%3A1:7.",
    n: 123,
    isEntry: false,
  });
  expect(chainLink("c.list:0.7")).toEqual({ chain: "c.list:0.", n: 7, isEntry: true });
  for (const id of ["timer_limit:e0", "limit:archive:7", "timer_list:e0", "list:begin"])
    expect(chainLink(id)).toBeUndefined();
});

/** Where a worker that knows nothing comes to: as `worker/execution/limits.ts` looks for the end of a chain. */
function found(isThere: (n: number) => boolean): number {
  let link = 1;
  while (isThere(link)) {
    for (let ahead = 1; isThere(link + ahead); ahead *= 2) link += ahead;
    link += 1;
  }
  return link;
}

test("the end of a chain is found by its landmarks, however long it has grown when they were chosen", () => {
  for (let end = 1; end <= 300; end++) {
    const left = new Set(Array.from({ length: end }, (_, i) => i + 1).filter((n) => isLandmark(n, end)));
    expect(left.size).toBeLessThan(60);
    for (const later of [end, end + 1, end + 2, end + 7, end + 100, 2 * end + 1]) {
      const isThere = (n: number) => (n <= end ? left.has(n) : n <= later);
      expect(found(isThere)).toBe(later + 1);
      expect(endOf(isThere)).toBe(later);
    }
  }
});
