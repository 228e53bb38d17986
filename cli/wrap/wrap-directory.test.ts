import { mkdtemp, open, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { Snapshot } from "../../wrap/snapshot.ts";
import { acceptedSnapshot, writeProject } from "./wrap-directory.ts";

const snapshot: Snapshot = {
  server: { name: "acme", version: "1" },
  revision: "2025-11-25",
  resources: false,
  tools: [],
  lists: { prompts: [], resources: [], resourceTemplates: [] },
  offers: [],
};

test("the accepted tools of a server are known also if its options cannot be read", async () => {
  const root = await mkdtemp(join(tmpdir(), "wrap-"));
  const options = { name: "acme", url: "https://acme.example" };
  await writeProject(root, options, snapshot);
  expect(await acceptedSnapshot(root, { ...options, url: "https://other.example" })).toBeUndefined();
  await writeFile(join(root, "options.json"), "");
  expect(await acceptedSnapshot(root, options)).toEqual(snapshot);
});

test("the options of a server are replaced at once, as a half-written file would make its accepted tools unknown", async () => {
  const root = await mkdtemp(join(tmpdir(), "wrap-"));
  const write = (name: string) => writeProject(root, { name, url: "https://acme.example" }, snapshot);
  await write("first");
  await using reader = await open(join(root, "options.json"));
  await write("second");
  expect(JSON.parse(await reader.readFile("utf8"))).toMatchObject({ name: "first" });
});
