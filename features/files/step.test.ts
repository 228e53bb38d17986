/** The files of an attempt, as its step has them. */
import { expect, test, vi } from "vitest";
import type { Step } from "../../core/author/context.ts";
import type { FileStorage } from "./kept-files.ts";
import { files } from "./step.ts";

const { signal } = new AbortController();

/** Runs an attempt whose function does this. */
async function attempt(fn: (step: Pick<Step, "file" | "read">) => Promise<unknown>, storage?: FileStorage) {
  const step = { attempt: 1, signal } as Step;
  const job = { jobName: "job", promiseOf: () => undefined };
  const lease = { id: "job", run: "job", version: 1 };
  return files({ storage }).attempt({ path: "read", lease, job, step, outsideBytes: 0 }, () => fn(step));
}

test("`read` takes a data: URI in a deployment that keeps no files, and `file` says that none are kept", async () => {
  const text = attempt(async ({ read }) => new Response(await read("data:,hello")).text());
  expect(await text).toBe("hello");
  await expect(attempt(({ file }) => file("a.txt", "a"))).rejects.toThrow("this deployment keeps no files");
});

test("a file that the function stores without waiting for it is refused, even if it is the first after the end", async () => {
  const write = vi.fn();
  const location = { objects: { list: async function* () {} } };
  const kept = { location, write, remove: async () => {} } as unknown as FileStorage;
  let late: Step["file"] | undefined;
  await attempt(async ({ file }) => {
    late = file;
  }, kept);
  write.mockImplementation(async (_key: string, content: AsyncIterable<Uint8Array>) => {
    for await (const _ of content);
  });
  await expect(late?.("a.txt", "a")).rejects.toThrow("the step ended before a.txt was stored: await it");
});
