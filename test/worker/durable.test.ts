import { Codec } from "@resonatehq/sdk";
import { expect, test } from "vitest";
import { storedError } from "../../worker/functions/durable.ts";

const circular: Record<string, unknown> = { name: "loop" };
circular.self = circular;
const hostile = new Error("x");
Object.defineProperty(hostile, "message", {
  get() {
    throw new Error("no message for you");
  },
});

test.each([
  ["an error", new Error("out of tea"), "out of tea"],
  ["a string", "out of tea", "out of tea"],
  ["nothing", undefined, "failed without giving a reason"],
  ["null", null, "failed without giving a reason"],
  ["an error without words", new Error(""), "failed without giving a reason"],
  ["an object that holds itself", circular, "loop"],
  ["a big integer", 10n, "10n"],
  ["an error whose message throws", hostile, "failed without giving a reason"],
])("what %s leaves behind is an error that can be stored and says what it can", (_what, thrown, message) => {
  const codec = new Codec();
  const stored = JSON.parse(Buffer.from(codec.encode(storedError(thrown)).data, "base64").toString());
  expect(stored.message).toContain(message);
  expect(stored).not.toHaveProperty("stack");
});

test("the reason is kept short", () => {
  expect(storedError("x".repeat(100_000)).message.length).toBeLessThanOrEqual(500);
});
