import { describe, expect, test } from "vitest";
import { readConfig } from "../../worker/config.ts";

test("everything has a default, and an empty variable counts as not set", () => {
  expect(readConfig({ RESONATE_URL: "", LOG_LEVEL: "" })).toEqual(readConfig({}));
  expect(readConfig({})).toMatchObject({ RESONATE_GROUP: "workers", LEASE_SECONDS: 15, DRAIN_SECONDS: 10 });
});

test("a Resonate URL may end in a slash", () => {
  expect(readConfig({ RESONATE_URL: "https://resonate.example/base/" }).RESONATE_URL).toBe(
    "https://resonate.example/base",
  );
});

describe.each([
  ["RESONATE_URL", "resonate.example"],
  ["RESONATE_URL", "ftp://resonate.example"],
  ["RESONATE_GROUP", "default"],
  ["RESONATE_GROUP", "a/b"],
  ["RESONATE_NAMESPACE", "a:b"],
  ["WEATHER_API_URL", "archive"],
  ["LOG_LEVEL", "loud"],
  ["HEALTH_PORT", "65536"],
  ["LEASE_SECONDS", "0"],
  ["MAX_TASKS", "1.5"],
  ["UPSTREAM_CONCURRENCY", "many"],
])("%s=%s", (name, value) => {
  test("is an error that names the variable", () => {
    expect(() => readConfig({ [name]: value })).toThrow(name);
  });
});
