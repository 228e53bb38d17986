import { expect, test } from "vitest";
import { isPrivate } from "../worker/connection/public-fetch.ts";
import { wrapServer } from "./index.ts";
import { policyOf } from "./policy.ts";
import type { ListedTool } from "./snapshot.ts";
import { programEnvironment } from "./worker/connection/environment.ts";
import { Unsendable } from "./worker/host/errors.ts";
import { WrappedServer } from "./worker/wrapped-server.ts";
import { matches } from "./wrap-options.ts";

const tool = (annotations: Record<string, boolean> = {}): ListedTool => ({
  name: "report_year",
  inputSchema: { type: "object" },
  annotations,
});

test.each([
  ["report_*", "report_year", true],
  ["*", "anything", true],
  ["*_year", "report_year", true],
  ["a*b*c", "abc", true],
  ["a*a", "a", false],
  ["report", "report_year", false],
])("%s fits %s: %s", (pattern, name, expected) => {
  expect(matches(pattern, name)).toBe(expected);
});

test("a call is repeated only if an annotation or a policy says that a repeat is safe", () => {
  const name = "acme";
  expect(policyOf(tool(), { name }).once).toBe(true);
  expect(policyOf(tool({ readOnlyHint: true }), { name }).once).toBe(false);
  expect(policyOf(tool({ idempotentHint: true }), { name }).once).toBe(false);
  const policies = { "report_*": { repeatable: false } };
  expect(policyOf(tool({ readOnlyHint: true }), { name, policies }).once).toBe(true);
  expect(() => policyOf(tool(), { name, policies: { "*": { freshFor: 1 } } })).toThrow(/needs repeatable as well/);
});

test("invalid options are refused with an explanation", () => {
  expect(() => wrapServer({ name: "Acme", url: "https://a.example" })).toThrow(/lower-case letters/);
  expect(() => wrapServer({ name: "acme" })).toThrow(/a url or a command/);
  expect(() => wrapServer({ name: "acme", url: "file:///etc/passwd" })).toThrow(/http/);
  expect(() => wrapServer({ name: "acme", command: "true", keep: Number.POSITIVE_INFINITY })).toThrow(
    /up to 2147483647/,
  );
  expect(() => wrapServer({ name: "acme", url: "https://a.example", concurrency: Number.POSITIVE_INFINITY })).toThrow(
    /up to 10000/,
  );
  expect(() => wrapServer({ name: "acme", command: "true", startTimeout: 2 ** 31 })).toThrow(/up to 2147483647/);
});

test.each(["127.0.0.1", "10.1.2.3", "172.20.0.1", "169.254.169.254", "::1", "fd00::1", "::ffff:10.0.0.1", "0.0.0.0"])(
  "%s is private",
  (address) => expect(isPrivate(address)).toBe(true),
);

test.each(["1.1.1.1", "172.32.0.1", "2606:4700::1111"])("%s is not private", (address) => {
  expect(isPrivate(address)).toBe(false);
});

test.each([
  ["an address of this machine", { url: "http://127.0.0.1:9/mcp" }, /is an address of this machine/],
  ["a name of this machine", { url: "http://localhost:6553/mcp" }, /is an address of this machine/],
  ["a variable that is not set", { command: "$(NOWHERE)" }, /has no NOWHERE/],
  ["no credentials", { command: "true", credentials: "KEYS" }, /this caller has no credentials for acme/],
])("%s is refused at once, without retries", async (_what, target, words) => {
  const log = { debug() {}, info() {}, warn() {}, error() {} };
  const server = new WrappedServer({ name: "acme", ...target }, { KEYS: "{}" });
  const error = await server.connection("", log).catch((error) => error);
  expect(error).toBeInstanceOf(Unsendable);
  expect(error.message).toMatch(words);
});

test("of the worker's environment, a program gets only the variables that it needs and those it is given", () => {
  const env = { PATH: "/bin", RESONATE_TOKEN: "secret", HOME: "/root" };
  expect(programEnvironment({ KEY: "given" }, env)).toEqual({ PATH: "/bin", HOME: "/root", KEY: "given" });
});
