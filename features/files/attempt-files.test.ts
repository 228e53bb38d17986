import { createHash } from "node:crypto";
import { afterEach, expect, test, vi } from "vitest";
import { MINUTE } from "../../core/author/context.ts";
import { isFinal } from "../../core/author/values.ts";
import { AttemptFiles } from "./attempt-files.ts";
import { FileStorage } from "./kept-files.ts";
import { memoryStore } from "./storage/memory.ts";

const { signal } = new AbortController();
const attempt = {
  path: "read",
  lease: { id: "job", run: "job", version: 1 },
  job: { jobName: "job", promiseOf: () => undefined },
  step: { attempt: 1, signal },
};

function hash() {
  const sha256 = createHash("sha256");
  return { update: (bytes: Uint8Array) => void sha256.update(bytes), digest: () => sha256.digest("hex") };
}

afterEach(() => {
  vi.useRealTimers();
});

/** Reads a file from a server that takes `pause` milliseconds for each of 100 bytes; the reader takes `reading` for each. */
async function readSlowly(pause: number, reading: number): Promise<number> {
  vi.useFakeTimers({ toFake: ["Date"] });
  let sent = 0;
  const source = {
    pull(controller: ReadableStreamDefaultController<Uint8Array>) {
      vi.setSystemTime(Date.now() + pause);
      sent += 1;
      if (sent > 100) controller.close();
      else controller.enqueue(new Uint8Array(1));
    },
  };
  const fetchPublic = async () =>
    new Response(new ReadableStream(source, { highWaterMark: 0 }), { headers: { "content-type": "a/b" } });
  const files = new AttemptFiles({ storage: undefined, fetchPublic }, attempt);
  let read = 0;
  for await (const bytes of await files.read({ from: "https://files.example/slow" })) {
    read += bytes.length;
    vi.setSystemTime(Date.now() + reading);
  }
  return read;
}

test("a file from a server that sends it byte by byte for half an hour fails, and may be retried", async () => {
  const error = await readSlowly(MINUTE, 0).catch((error) => error);
  expect(error.message).toBe("files.example took more than 30 minutes to send the file");
  expect(isFinal(error)).toBe(false);
});

test("a slow reader gets the whole file", async () => {
  expect(await readSlowly(10, MINUTE)).toBe(100);
});

test.each(["half a pair \ud83d", "\udc4d the other half", "a/b", "a\nb", ""])(
  "a file whose name no address can hold is refused before it is stored, and not retried: %j",
  async (name) => {
    const storage = new FileStorage({ objects: undefined as never });
    const error = await new AttemptFiles({ storage }, attempt).file(name, "content").catch((error) => error);
    expect(error.message).toMatch(/^step\.file: a file's name has 1 to 200 characters, without /);
    expect(isFinal(error)).toBe(true);
  },
);

test("a file is stored once the bucket answers again, in the attempt in which its list could not be read", async () => {
  const objects = memoryStore();
  let failures = 2;
  const list = (prefix: string) => {
    if (failures-- > 0) throw new Error("the bucket is away");
    return objects.list(prefix);
  };
  const storage = new FileStorage({ objects: { ...objects, list }, hash });
  const files = new AttemptFiles({ storage }, attempt);
  const store = () => files.file("report.txt", "content");
  await expect(store()).rejects.toThrow("the bucket is away");
  await expect(store()).rejects.toThrow("the bucket is away");
  expect(await store()).toMatchObject({ name: "report.txt", size: 7 });
});

test("an attempt keeps the files that its value names, and tells their size", async () => {
  const objects = memoryStore();
  const files = new AttemptFiles({ storage: new FileStorage({ objects, hash }) }, attempt);
  const film = await files.file("film.txt", "a film");
  const draft = await files.file("draft.txt", "a draft that nobody needs");
  expect(await files.keepReferenced({ film: [film, film.uri] })).toBe(6);
  expect(await new Response(await files.read(film)).text()).toBe("a film");
  await expect(files.read(draft)).rejects.toThrow("the caller has no such file, or it is gone");
});
