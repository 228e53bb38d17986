import { describe, expect, test } from "vitest";
import * as z from "zod";
import { defineJob, implement } from "../core/index.ts";
import { readConfig } from "./config.ts";
import { createLogger } from "./process/logger.ts";
import { createWorker } from "./worker.ts";

test("everything has a default, and an empty variable counts as not set", () => {
  expect(readConfig({ RESONATE_URL: "", LOG_LEVEL: "" })).toEqual(readConfig({}));
  expect(readConfig({})).toMatchObject({ RESONATE_GROUP: "workers", LEASE_SECONDS: 15, DRAIN_SECONDS: 10 });
});

test("a Resonate URL may end in a slash", () => {
  expect(readConfig({ RESONATE_URL: "https://resonate.example/base/" }).RESONATE_URL).toBe(
    "https://resonate.example/base",
  );
});

test("in a container the address of the server has no default", () => {
  expect(() => readConfig({ CONTAINER: "1" })).toThrow("RESONATE_URL: must be set in a container");
  expect(readConfig({ CONTAINER: "1", RESONATE_URL: "http://resonate:8001" })).toMatchObject({
    RESONATE_URL: "http://resonate:8001",
  });
});

describe.each([
  ["RESONATE_URL", "resonate.example"],
  ["RESONATE_URL", "ftp://resonate.example"],
  ["RESONATE_GROUP", "default"],
  ["RESONATE_GROUP", "a/b"],
  ["RESONATE_NAMESPACE", "a:b"],
  ["LOG_LEVEL", "loud"],
  ["HEALTH_PORT", "65536"],
  ["LEASE_SECONDS", "0"],
  ["MAX_TASKS", "1.5"],
])("%s=%s", (name, value) => {
  test("is an error that names the variable", () => {
    expect(() => readConfig({ [name]: value })).toThrow(name);
  });
});

describe("a worker", () => {
  const env = z.object({
    ARCHIVE_URL: z.url().default("https://archive.example"),
    LIMIT: z.coerce.number().min(1).default(8),
  });
  const job = defineJob({ kind: "gather", args: z.object({}), id: () => "x" });
  const made = (given: NodeJS.ProcessEnv) =>
    createWorker(readConfig(given), [implement(job, async () => "done", { env })], given, createLogger("silent"));

  test.each([
    ["ARCHIVE_URL", "archive"],
    ["LIMIT", "many"],
    ["LIMIT", "0"],
  ])("whose jobs cannot run with %s=%s is refused before it takes any", (name, value) => {
    expect(() => made({ [name]: value })).toThrow(new RegExp(`^Configuration: ${name}: `));
  });

  test("needs no variable for its jobs that has a default, and treats an empty variable as not set", () => {
    expect(() => made({ ARCHIVE_URL: "", LIMIT: "" })).not.toThrow();
  });
});
