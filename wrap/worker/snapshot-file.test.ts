import { expect, test } from "vitest";
import { readSnapshot, waitingFileOf } from "./snapshot-file.ts";

test.each([
  ["snapshot.json", "waiting.json"],
  ["acme.snapshot.ts", "acme.waiting.json"],
  ["acme%20(b).snapshot.ts", "acme%20(b).waiting.json"],
  ["acme.ts", "acme.waiting.json"],
])("what waits beside the snapshot %s is in %s, so that servers of one folder do not share it", (snapshot, waiting) => {
  expect(waitingFileOf(new URL(`file:///project/tools/${snapshot}`)).href).toBe(`file:///project/tools/${waiting}`);
});

test("a snapshot that cannot be read does not count as missing, because the first lists are accepted without asking", async () => {
  const folder = new URL(".", import.meta.url);
  expect(await readSnapshot(new URL("none.snapshot.ts", folder))).toBeUndefined();
  await expect(readSnapshot(folder)).rejects.toThrow("EISDIR");
});
