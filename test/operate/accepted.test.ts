/** The audit log shows who accepted a wrapped server's changed list of tools, when, and with which changes. */
import { mkdtemp, writeFile } from "node:fs/promises";
import { tmpdir, userInfo } from "node:os";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { expect, test, vi } from "vitest";
import { run } from "../../testing/stack/program.ts";
import { readSnapshot } from "../../wrap/worker/snapshot-file.ts";
import { projectOf } from "../wrap/support.ts";
import { operatorAt, startOperated } from "./support.ts";

vi.setConfig({ testTimeout: 150_000 });

const tool = (name: string, description: string) => ({ name, description, inputSchema: { type: "object" } });

test("each acceptance is once in the audit log of the deployment that lists the tools, and changes without one are not", async () => {
  const file = join(await mkdtemp(join(tmpdir(), "accepted-")), "tools.json");
  const become = (...tools: object[]) => writeFile(file, JSON.stringify(tools));
  await become(tool("read", "Reads."));
  const args = [resolve("test/wrap/list/shifting.ts")];
  const options = { name: "shifting", command: process.execPath, args, env: { TOOLS: file } };
  const { root } = await projectOf(options);
  const synced = async (...args: string[]) => {
    await using program = run("cli/main.ts", { args: ["sync", ...args], cwd: root });
    expect(await program.exited, program.output()).toMatchObject({ exitCode: 0 });
    return program.output();
  };
  const listed = async () => JSON.stringify(await readSnapshot(pathToFileURL(join(root, "snapshot.ts"))));

  const bindings: Record<string, string> = { WRAP_OPTIONS: JSON.stringify(options), WRAP_SNAPSHOT: await listed() };
  const programs = { edge: "test/wrap/wrap-edge.ts", worker: "" };
  await using stack = await startOperated({ bindings, programs, workers: 0 });
  const auditLog = async () => (await operatorAt(stack.origin).get("audit-log", { after: "0" })).entries;
  const deployed = async () => {
    bindings.WRAP_SNAPSHOT = await listed();
    await stack.edge.kill();
    await stack.edge.start();
  };
  expect(await auditLog()).toEqual([]);

  await become(tool("read", "Reads all."), tool("leak", "Is new."));
  expect(await synced()).toContain("Held back until");
  const before = new Date().toISOString();
  await synced("--accept", "read");
  expect(await synced("--accept")).toContain("leak is new");
  expect(await synced("--accept")).toContain("as it was");
  await deployed();
  const accepted = (...changes: unknown[]) => ({
    who: userInfo().username,
    what: "list of tools accepted",
    about: { server: "shifting", at: expect.stringMatching(/^20.*Z$/), changes },
  });
  const entries = await auditLog();
  expect(entries).toMatchObject([
    accepted('~ read description: "Reads." → "Reads all."'),
    accepted(expect.stringMatching(/^\+ leak is new: .*"Is new\."/)),
    { who: "deployment", what: "tools changed", about: { added: ["leak"] } },
  ]);
  const [first, second] = entries.map(({ about }: { about: { at: string } }) => about.at);
  expect([before, first, second]).toEqual([before, first, second].toSorted());

  // Changes that narrow the list are taken without an acceptance.
  await become(tool("leak", "Is new."));
  await synced();
  await deployed();
  expect((await auditLog()).slice(3)).toMatchObject([{ what: "tools changed", about: { removed: ["read"] } }]);
});
