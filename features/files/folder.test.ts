import { mkdir, mkdtemp, readdir, readlink, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { folderStore } from "./folder.ts";

/** The files that this process has open in a folder, as Linux lists them. */
async function openIn(folder: string): Promise<string[]> {
  const targets = (await readdir("/proc/self/fd")).map((fd) => readlink(`/proc/self/fd/${fd}`).catch(() => ""));
  return (await Promise.all(targets)).filter((path) => path.startsWith(folder));
}

test.runIf(process.platform === "linux")("a file whose read fails is closed", async () => {
  const root = await mkdtemp(join(tmpdir(), "folder-"));
  try {
    // A directory can be opened, but not read.
    await mkdir(join(root, "a/b"), { recursive: true });
    const reader = (await folderStore(root).read("a/b"))?.getReader();
    await expect(reader?.read()).rejects.toThrow("EISDIR");
    await expect.poll(() => openIn(root), { timeout: 2_000 }).toEqual([]);
  } finally {
    await rm(root, { recursive: true });
  }
});
