import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { execa } from "execa";
import { afterEach, beforeEach, expect, test } from "vitest";

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "new-"));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

/** Runs the command in `cwd`; resolves with its output and its exit code. */
async function make(args: string[], cwd = folder) {
  const main = resolve("cli/main.ts");
  const { exitCode, all } = await execa(process.execPath, [main, "new", ...args], { cwd, reject: false, all: true });
  return { exitCode, all };
}

const text = (path: string) => readFile(join(folder, path), "utf8");

test.each([
  [["My Server", "--package", "1.0.0"], 'A server\'s name is up to 54 lower-case letters, digits and "-"'],
  [["1st", "--package", "1.0.0"], 'beginning with a letter, not "1st".'],
  [["there", "--package", "1.0.0"], "/there is there already."],
  [["mine", "--package", "gone.tgz"], "/gone.tgz does not exist."],
])("%j is answered with one line", async (args, line) => {
  await mkdir(join(folder, "there"));
  const { exitCode, all } = await make(args);
  expect([exitCode, all.split("\n").length]).toEqual([1, 1]);
  expect(all).toContain(line);
  expect(await readdir(folder)).toEqual(["there"]);
});

test.each([[[]], [["a", "b"]], [["mine", "--tool", "Send Invoice"]], [["--sail"]]])(
  "%j is answered with the usage",
  async (args) => {
    const { exitCode, all } = await make(args);
    expect(exitCode).toBe(2);
    expect(all).toContain("Usage: ");
  },
);

test("a project for a published version names that version and has no tarball", async () => {
  expect((await make(["my-server", "--package", "0.1.0"])).all).toContain("cd my-server\n  npm install\n  npm start");
  expect(await readdir(join(folder, "my-server"))).not.toContain("vendor");
  const { dependencies, devDependencies, optionalDependencies } = JSON.parse(await text("my-server/package.json"));
  expect(dependencies["durable-mcp-edge"]).toBe("0.1.0");
  for (const version of Object.values({ ...dependencies, ...devDependencies, ...optionalDependencies })) {
    expect(version).toMatch(/^\d+\.\d+\.\d+$/);
  }
  expect(await text("my-server/Dockerfile")).not.toContain("vendor");
  expect(await text("my-server/wrangler.toml")).toContain('name = "my-server"');
});

test("the output names an absolute folder by its absolute path", async () => {
  const made = join(folder, "shop");
  expect((await make([made, "--package", "0.1.0"])).all).toContain(`cd ${made}\n`);
});

test("a project has only the requested tool", async () => {
  await make(["shop", "--tool", "send-invoice", "--package", "0.1.0"]);
  expect(await readdir(join(folder, "shop/tools"))).toEqual(["index.ts", "runs.ts", "send-invoice"]);
  expect(await text("shop/tools/send-invoice/send-invoice.ts")).toContain('name: "send_invoice"');
  const all = (
    await Promise.all(["tools/index.ts", "tools/runs.ts", "README.md"].map((path) => text(`shop/${path}`)))
  ).join();
  expect(all).not.toMatch(/wait.?for.?site|example|my-server/i);
  expect(all).toContain("tools/send-invoice/send-invoice.run.ts");
});

test("a tool is added to lists as an author writes them", async () => {
  await mkdir(join(folder, "tools"));
  await writeFile(
    join(folder, "tools/index.ts"),
    'import {\n  a,\n  b,\n} from "./a.ts";\n\nexport const tools: readonly Tool[] = [\n  a, // the first\n  b,\n];\n',
  );
  await writeFile(join(folder, "tools/runs.ts"), "export const runs = [];\n");
  const { exitCode, all } = await make(["--tool", "delete"]);
  expect([exitCode, all.split("\n").length]).toEqual([0, 5]);
  expect(await text("tools/index.ts")).toBe(
    'import {\n  a,\n  b,\n} from "./a.ts";\nimport { deleteTool } from "./delete/delete.ts";\n\n' +
      "export const tools: readonly Tool[] = [\n  a, // the first\n  b,\n  deleteTool,\n];\n",
  );
  expect(await text("tools/runs.ts")).toBe(
    'import { deleteToolRun } from "./delete/delete.run.ts";\nexport const runs = [deleteToolRun];\n',
  );
});

test("a tool is added only inside a project", async () => {
  const { exitCode, all } = await make(["--tool", "send_invoice"]);
  expect([exitCode, all]).toEqual([1, "There is no tools/index.ts here. Run this in the folder of your server."]);
  expect(await readdir(folder)).toEqual([]);
});
