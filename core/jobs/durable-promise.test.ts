import { expect, test } from "vitest";
import { encodeValue, RESUMES_TAG } from "../resonate/codec.ts";
import { resumptionId } from "../resonate/ids.ts";
import { firstSeed } from "./durable-promise.ts";

test.each([
  ["that resumes has the seed of the earlier attempt", { from: "a", seed: "earlier" }, "earlier"],
  ["that began anew has its own seed", { anew: "why" }, "own"],
  ["that no worker has begun has its own seed", undefined, "own"],
])("an attempt %s", async (_which, resumption, seed) => {
  const promise = { id: "a~2", param: encodeValue({ func: "f", seed: "own" }), tags: { [RESUMES_TAG]: "a" } };
  const get = async (id: string) =>
    id === resumptionId("a~2") && resumption ? { param: encodeValue(resumption) } : undefined;
  expect(await firstSeed(promise as never, get as never)).toBe(seed);
});
