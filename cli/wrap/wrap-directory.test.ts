import { mkdtemp, open } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { writeProject } from "./wrap-directory.ts";

test("the options of a server are replaced at once, as a half-written file would make its accepted tools unknown", async () => {
  const root = await mkdtemp(join(tmpdir(), "wrap-"));
  const snapshot = { server: { name: "acme", version: "1" }, revision: "2025-11-25", resources: false, tools: [] };
  const write = (name: string) => writeProject(root, { name, url: "https://acme.example" }, snapshot);
  await write("first");
  await using reader = await open(join(root, "options.json"));
  await write("second");
  expect(JSON.parse(await reader.readFile("utf8"))).toMatchObject({ name: "first" });
});
