import { mkdir, mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test, vi } from "vitest";
import { openServer } from "../../backup/paused-server.ts";
import { run } from "./backup.ts";

test("a backup over an earlier one does not keep the files of jobs that were removed since", async () => {
  const folder = await mkdtemp(join(tmpdir(), "backup-"));
  const [data, out] = [join(folder, "data"), join(folder, "backup")];
  await (await openServer({ data }, true))[Symbol.asyncDispose]();
  const files = join(data, "files");
  await mkdir(join(files, "removed"), { recursive: true });
  await writeFile(join(files, "kept"), "");
  const log = vi.spyOn(console, "log").mockReturnValue();
  try {
    await run(["--data", data, "--out", out]);
    expect((await readdir(`${out}.files`)).sort()).toEqual(["kept", "removed"]);
    await rm(join(files, "removed"), { recursive: true });
    await run(["--data", data, "--out", out]);
    expect(await readdir(`${out}.files`)).toEqual(["kept"]);
    await rm(files, { recursive: true });
    await run(["--data", data, "--out", out]);
    // Where the files are kept elsewhere, this may be a copy by hand.
    expect((await readdir(folder)).sort()).toEqual(["backup", "backup.files", "data"]);
    expect(log.mock.calls.flat().join("\n")).toContain("backup.files stays as it is");
  } finally {
    log.mockRestore();
    await rm(folder, { recursive: true });
  }
});
