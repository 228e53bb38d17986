import fs, { mkdtempSync, rmSync } from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test, vi } from "vitest";
import { FileWatcher } from "./watch-files.ts";

test("a folder that the system does not watch is reported, once for all of them", () => {
  const root = mkdtempSync(join(tmpdir(), "watch-"));
  fs.mkdirSync(join(root, "a"));
  fs.mkdirSync(join(root, "b"));
  const { watch } = fs;
  const limit = Object.assign(new Error("the limit is reached"), { code: "ENOSPC" });
  const watchRootOnly = (folder: string, ...others: unknown[]) => {
    if (folder !== root) throw limit;
    return watch(folder, ...(others as []));
  };
  Object.assign(fs, { watch: watchRootOnly });
  syncBuiltinESMExports();
  const onLimit = vi.fn();
  try {
    new FileWatcher(root, { ignoredFolders: [], onChange() {}, onLimit }).close();
    expect(onLimit.mock.calls).toEqual([[limit]]);
  } finally {
    Object.assign(fs, { watch });
    syncBuiltinESMExports();
    rmSync(root, { recursive: true });
  }
});
