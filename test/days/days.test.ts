/** The short form of `npm run week`. */
import { expect, test } from "vitest";
import { type DayEnd, simulateDays } from "./days.ts";

test("with jobs every day, the server's stored data levels off", async () => {
  const ends: DayEnd[] = [];
  const [days, jobs] = [4, 48];
  const options = { days, jobs, parts: 3, callers: 2, retentionDays: 1, restarts: false };
  for await (const end of simulateDays(options)) ends.push(end);
  const [first, last] = [ends[0], ends.at(-1)] as [DayEnd, DayEnd];
  expect(last.started).toBe(days * jobs);
  // The server keeps running timers and the jobs that ended within a day: about a day's jobs, not those of all days.
  for (const { rows } of ends) {
    expect(rows.tasks).toBeGreaterThanOrEqual(jobs / 3);
    expect(rows.tasks).toBeLessThanOrEqual(1.5 * jobs);
  }
  // Quota reservations, limits and list entries stay a day longer, and some links of each chain even longer.
  expect(last.rows.promises).toBeLessThanOrEqual((days / 2) * first.rows.promises);
});
