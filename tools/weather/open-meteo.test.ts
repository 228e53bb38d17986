import { describe, expect, test } from "vitest";
import type { Step } from "../../core/index.ts";
import { ArchiveEnv, archiveOf, type Period } from "./open-meteo.ts";
import type { Fault } from "./sample-archive/faults.ts";
import { type SampleArchive, startSampleArchive } from "./sample-archive/server.ts";

const SEATTLE = { latitude: 47.6, longitude: -122.3 };
const JANUARY: Period = { ...SEATTLE, start_date: "2014-01-01", end_date: "2014-01-31", timezone: "auto" };

/** The archive's client in a worker with these settings. */
function clientOf(url: string, { timeout = 1 } = {}) {
  return archiveOf(ArchiveEnv.parse({ WEATHER_API_URL: url, UPSTREAM_TIMEOUT_SECONDS: timeout }));
}

/** An attempt of a step, with the statuses of the requests that it measured. */
function attemptOf({
  attempt = 1,
  deadline = Date.now() + 60_000,
  idempotencyKey = "k",
  signal = new AbortController().signal,
} = {}): Step & { statuses: unknown[] } {
  const statuses: unknown[] = [];
  const log = { debug() {}, info() {}, warn() {}, error() {} };
  const metrics = { count() {}, observe: (_name: string, _seconds: number, labels = {}) => statuses.push(labels) };
  const file = () => Promise.reject(new Error("no files here"));
  return {
    attempt,
    idempotencyKey,
    signal,
    deadline,
    owner: "",
    env: {},
    log,
    metrics,
    progress() {},
    file,
    read: file,
    statuses,
  };
}

test.each([
  ["WEATHER_API_URL", "archive"],
  ["WEATHER_API_URL", "ftp://archive.example"],
  ["UPSTREAM_CONCURRENCY", "many"],
  ["UPSTREAM_TIMEOUT_SECONDS", "0"],
])("%s=%s is refused, by name", (name, value) => {
  expect(ArchiveEnv.safeParse({ [name]: value }).error?.issues).toMatchObject([{ path: [name] }]);
});

test("each configuration has one archive client, which counts all unusable answers together", () => {
  const env = ArchiveEnv.parse({});
  expect(archiveOf(env)).toBe(archiveOf(env));
  expect(archiveOf(env)).not.toBe(archiveOf(ArchiveEnv.parse({})));
});

test("a request that would begin after its job's deadline is not made", async () => {
  await using archive = await startSampleArchive();
  const late = attemptOf({ deadline: Date.now() + 500 });
  await expect(clientOf(archive.url).daily(JANUARY, late)).rejects.toThrow("ran out");
  expect(archive.control.requests.total).toBe(0);
});

test("an aborted step ends its request", async () => {
  await using archive = await startSampleArchive();
  archive.control.inject({ fault: { kind: "hang" } });
  const leaving = new AbortController();
  const request = clientOf(archive.url, { timeout: 60 }).daily(JANUARY, attemptOf({ signal: leaving.signal }));
  while (archive.control.requests.total === 0) await new Promise((resolve) => setTimeout(resolve, 10));
  leaving.abort();
  await expect(request).rejects.toThrow("could not be reached");
});

test("parameters of the configured address are sent, and not shown in errors", async () => {
  await using archive = await startSampleArchive();
  archive.control.inject({ fault: { kind: "status", status: 500 }, times: 1 });
  const client = clientOf(`${archive.url}?apikey=s3cret`);
  const error = await client.daily(JANUARY, attemptOf()).catch((error: Error) => error);
  expect(String(error)).not.toContain("s3cret");
  expect(archive.control.requests.log[0]?.query).toMatch(/^apikey=s3cret&latitude=47.6&/);
});

describe("an answer", () => {
  const ask = async (archive: SampleArchive, fault: Fault | undefined, step = attemptOf()) => {
    archive.control.clear();
    if (fault) archive.control.inject({ fault });
    return clientOf(archive.url).daily(JANUARY, step);
  };

  test("is counted by its status", async () => {
    await using archive = await startSampleArchive();
    const step = attemptOf();
    await ask(archive, undefined, step);
    for (const fault of [
      { kind: "status", status: 503 },
      { kind: "status", status: 404 },
      { kind: "refuse" },
    ] as const) {
      await ask(archive, fault, step).catch(() => {});
    }
    expect(step.statuses).toEqual([{ status: "2xx" }, { status: "5xx" }, { status: "4xx" }, { status: "none" }]);
  });

  test.each([
    [408, {}, "Error"],
    [429, {}, "Error"],
    [500, {}, "Error"],
    [503, { retry_after: "20" }, "RetryableError"],
    [400, {}, "NonRetryableError"],
    [404, {}, "NonRetryableError"],
    [302, {}, "NonRetryableError"],
  ])("of %i with %j is a %s, with its reason", async (status, more, name) => {
    await using archive = await startSampleArchive();
    const fault: Fault = { kind: "status", status, reason: "that is why", ...more };
    await expect(ask(archive, fault)).rejects.toMatchObject({
      name,
      message: `Open-Meteo answered ${status}: that is why`,
      ...("retry_after" in more && { retryAfter: 20_000 }),
    });
  });

  test("that is unusable is final the fourth time, even with outages in between", async () => {
    await using archive = await startSampleArchive();
    const client = clientOf(archive.url);
    const attempts: Fault["kind"][] = ["rubbish", "status", "status", "rubbish", "status", "rubbish", "rubbish"];
    const errors: unknown[] = [];
    for (const [i, kind] of attempts.entries()) {
      archive.control.clear();
      archive.control.inject({ fault: kind === "status" ? { kind, status: 503 } : { kind: "rubbish", body: "html" } });
      errors.push(await client.daily(JANUARY, attemptOf({ attempt: i + 1 })).catch((error: unknown) => error));
      // Answers to other steps are counted separately.
      await client.daily(JANUARY, attemptOf({ idempotencyKey: `other ${i}` })).catch(() => {});
    }
    expect(errors.map((error) => (error as Error).name)).toEqual([...Array(6).fill("Error"), "NonRetryableError"]);
    expect((errors.at(-1) as Error).message).toBe("gave up after 7 attempts: Open-Meteo's answer is not JSON");
  });
});
