import { createHash } from "node:crypto";
import { expect, test } from "vitest";
import { FileStorage, folderOf } from "./kept-files.ts";
import { memoryStore } from "./storage/memory.ts";
import { chunksOf } from "./storage/objects.ts";
import { sweepInSteps } from "./sweep.ts";

test("a file stays if its job was started again while the sweep looked at other files", async () => {
  const hash = () => {
    const hash = createHash("sha256");
    return { update: (bytes: Uint8Array) => void hash.update(bytes), digest: () => hash.digest("hex") };
  };
  const files = new FileStorage({ objects: memoryStore(), hash });
  for (const job of ["kept", "again", "gone"]) {
    const data = chunksOf(new Blob([job]).stream());
    await files.write(`${await folderOf(job)}/${"0".repeat(16)}-1.1.1`, data, {
      job,
      name: "a",
      mimeType: "text/plain",
    });
  }
  const jobs = new Set(["kept"]);
  const send = async (_kind: string, { id }: { id: string }) => ({ status: jobs.has(id) ? 200 : 404 });
  const steps = sweepInSteps(files, { send } as never, { unfinishedMs: -1_000 });
  for (let n = 0; n < 3; n++) expect(await steps.next()).toEqual({ done: false, value: 0 });
  jobs.add("again");
  for await (const _removed of steps);
  const isThere = async (job: string) =>
    (await files.describe(`${await folderOf(job)}/${"0".repeat(16)}-1.1.1`)) !== undefined;
  expect(await Promise.all(["kept", "again", "gone"].map(isThere))).toEqual([true, true, false]);
});
