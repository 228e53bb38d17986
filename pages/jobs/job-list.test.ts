import { expect, test } from "vitest";
import type { ListedJob, Status } from "../lib/server.ts";
import { JobList } from "./job-list.ts";

/** A server with jobs named by numbers, which began in that order, in pages of two, and the cursors for which it was asked. */
function serverOf(count: number) {
  const jobs = new Map<number, Status>();
  for (let n = 1; n <= count; n++) jobs.set(n, "running");
  const cursors: (string | undefined)[] = [];
  const jobOf = ([n, status]: [number, Status]): ListedJob => ({
    job_name: `${n}`,
    kind: "timer",
    status,
    started_at: new Date(1_000 * n).toISOString(),
  });
  return {
    jobs,
    cursors,
    ask: async (cursor: string | undefined) => {
      cursors.push(cursor);
      const after = [...jobs].sort(([a], [b]) => b - a).filter(([n]) => cursor === undefined || n < Number(cursor));
      const page = after.slice(0, 2).map(jobOf);
      return { jobs: page, ...(after.length > 2 && { next_cursor: `${page.at(-1)?.job_name}` }) };
    },
  };
}

const namesIn = ({ jobs }: JobList) => jobs.map(({ job_name }) => job_name).join(" ");

test("an older page is read once when it is asked for, and the newest jobs each time", async () => {
  const { cursors, ask } = serverOf(6);
  const list = new JobList();
  await list.read(1, ask);
  expect([namesIn(list), list.hasMore]).toEqual(["6 5", true]);
  await list.read(2, ask);
  expect([namesIn(list), list.hasMore]).toEqual(["6 5 4 3", true]);
  await list.read(3, ask);
  expect([namesIn(list), list.hasMore]).toEqual(["6 5 4 3 2 1", false]);
  await list.read(3, ask);
  expect(cursors).toEqual([undefined, undefined, "5", undefined, "3", undefined]);
});

test("a job that a new one moves out of the first page stays in the list", async () => {
  const { jobs, ask } = serverOf(5);
  const list = new JobList();
  await list.read(2, ask);
  for (const n of [6, 7]) {
    jobs.set(n, "running");
    await list.read(2, ask);
  }
  expect([namesIn(list), list.hasMore]).toEqual(["7 6 5 4 3 2", true]);
});

test("a job that the newest jobs no longer contain leaves the list", async () => {
  const { jobs, ask } = serverOf(5);
  const list = new JobList();
  await list.read(2, ask);
  jobs.delete(5);
  await list.read(2, ask);
  expect(namesIn(list)).toBe("4 3 2");
  jobs.delete(2);
  jobs.delete(1);
  jobs.delete(3);
  await list.read(2, ask);
  expect([namesIn(list), list.hasMore]).toEqual(["4", false]);
});

test("a list without older pages has the newest jobs alone", async () => {
  const { jobs, ask } = serverOf(3);
  const list = new JobList();
  await list.read(1, ask);
  jobs.set(4, "running");
  await list.read(1, ask);
  expect([namesIn(list), list.hasMore]).toEqual(["4 3", true]);
  await list.read(2, ask);
  expect([namesIn(list), list.hasMore]).toEqual(["4 3 2 1", false]);
});

test("all older jobs are read again in turn, so that none stays as it was", async () => {
  const { jobs, cursors, ask } = serverOf(6);
  const list = new JobList();
  await list.read(3, ask);
  // These move others out of the first page.
  for (const n of [7, 8, 9]) {
    jobs.set(n, "running");
    await list.read(3, ask);
  }
  for (const n of jobs.keys()) jobs.set(n, "complete");
  jobs.delete(3);
  cursors.length = 0;
  for (let n = 0; n < 24; n++) await list.read(3, ask);
  expect(namesIn(list)).toBe("9 8 7 6 5 4 2 1");
  expect(list.jobs.filter(({ status }) => status === "running")).toEqual([]);
  expect(cursors.filter((cursor) => cursor !== undefined)).toEqual(["8", "6", "4", "8"]);
});

test("an older page that could not be read is read at the next time", async () => {
  const { ask } = serverOf(4);
  const list = new JobList();
  const refusingAsk = (cursor: string | undefined) =>
    cursor === undefined ? ask(cursor) : Promise.reject(new Error("no"));
  await expect(list.read(2, refusingAsk)).rejects.toThrow("no");
  expect([namesIn(list), list.hasMore]).toEqual(["4 3", true]);
  await list.read(2, ask);
  expect([namesIn(list), list.hasMore]).toEqual(["4 3 2 1", false]);
});
