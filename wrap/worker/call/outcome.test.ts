import { promisify } from "node:util";
import { afterEach, expect, test, vi } from "vitest";
import { MINUTE, NonRetryableError, type Step } from "../../../core/author/context.ts";
import { FILES_KEY, MAX_FILE_NAME } from "../../../core/author/file.ts";
import { type Lease, leaseOfStep } from "../../../core/engine/job-lease.ts";
import { PARTS_KEY } from "../../../core/resonate/codec.ts";
import { MAX_WHOLE_CHARACTERS } from "../../../core/tools/byte-range.ts";
import { RPC_FAILURE } from "../../../core/tools/content.ts";
import { MAX_MEDIA } from "../../../core/tools/results.ts";
import { storeAnswer, toolAnswer } from "./outcome.ts";

test("a server's answer is returned unchanged, without the fields about its connection", () => {
  const answer = {
    content: [
      { type: "text", text: "hello", annotations: { audience: ["user"], priority: 1 } },
      { type: "image", data: "AAAA", mimeType: "image/png" },
      { type: "audio", data: "AAAA", mimeType: "audio/wav", _meta: { "acme.example/voice": "low" } },
      { type: "resource", resource: { uri: "acme://a", mimeType: "text/plain", text: "a" } },
      { type: "resource_link", uri: "acme://b", name: "b", icons: [{ src: "https://acme.example/b.png" }] },
      { type: "hologram", what: "nobody here knows" },
    ],
    structuredContent: { nested: { list: [1, null, "ü"] } },
    isError: true,
    later: "a field of a revision to come",
  };
  const _meta = { "acme.example/id": 7 };
  const connection = { "io.modelcontextprotocol/serverInfo": { name: "acme", version: "1" } };
  const full = { ...answer, resultType: "complete", _meta: { ..._meta, ...connection } };
  expect(toolAnswer(full)).toEqual({ ...answer, _meta });
  expect(toolAnswer({ ...answer, _meta: connection })).toEqual(answer);
  // Only a worker may write a table of contents or refer to files, so these fields of a server are removed.
  expect(toolAnswer({ ...answer, [PARTS_KEY]: { id: "another's" }, [FILES_KEY]: [{ uri: "another's" }] })).toEqual(
    answer,
  );
});

test("a number that cannot be held, in the answer to a prompt or a read, is reported", async () => {
  const result = { contents: [{ uri: "acme://a", text: "a", _meta: { size: Number.POSITIVE_INFINITY } }] };
  const stored = await storeAnswer({} as Step, result, undefined);
  expect(stored).toMatchObject({
    [RPC_FAILURE]: { message: expect.stringMatching(/beyond ±1.8e308.*contents\[0\]\._meta\.size/) },
  });
});

afterEach(() => {
  vi.useRealTimers();
});

/** An answer with a file that is too large to stay in it. */
const largeAnswer = (uri: string, size = MAX_MEDIA + 4) => ({
  content: [{ type: "resource", resource: { uri, blob: "A".repeat(size) } }],
});

test.each([
  ["a pair that is cut", `acme://files/${"👍".repeat(MAX_FILE_NAME)}.jpeg`],
  ["half a pair", "acme://files/half \ud83d.jpeg"],
])("a file whose name has %s is stored under a name that an address can hold", async (_what, uri) => {
  const names: string[] = [];
  const file = async (name: string) => {
    names.push(name);
    return { name, mimeType: "image/png", size: 1, uri: "job://a" };
  };
  await storeAnswer({ file } as unknown as Step, largeAnswer(uri), "acme");
  const [name = ""] = names;
  expect(encodeURIComponent(name)).toMatch(/\.jpeg$/);
  expect(name.length).toBeLessThanOrEqual(MAX_FILE_NAME);
});

/** A turn of the machine's own event loop, in which work that no timer drives goes on. */
const turn = promisify(setImmediate);

/** Stores an answer while time passes; `file` stores its file. Also resolves with the time that this took. */
async function storeWith(file: Step["file"], size?: number) {
  vi.useFakeTimers();
  const { signal } = new AbortController();
  const step = { file, signal, log: { warn() {} } } as unknown as Step;
  leaseOfStep.set(step, { id: "job", create: async () => ({}) } as unknown as Lease);
  const start = Date.now();
  let isStored = false;
  const answer = storeAnswer(step, largeAnswer("acme://film.mp4", size), "acme").finally(() => {
    isStored = true;
  });
  answer.catch(() => {});
  while (!isStored) {
    await vi.advanceTimersToNextTimerAsync();
    await turn();
  }
  return { answer: await answer, duration: Date.now() - start };
}

test("a file is stored after a short outage of the store", async () => {
  let tries = 0;
  const { answer } = await storeWith(async (name) => {
    tries += 1;
    if (tries < 4) throw new Error("the store of files: fetch failed");
    return { name, uri: "job://a/files/b/film.mp4" } as never;
  });
  expect(answer[FILES_KEY]).toMatchObject([{ name: "film.mp4" }]);
});

test.each([
  ["continues", () => new Error("the store of files: fetch failed"), { from: MINUTE, to: 5 * MINUTE }],
  ["is certain", () => new NonRetryableError("the job's files come to more than 9 bytes"), { from: 0, to: 0 }],
])("an answer is kept in parts if its file cannot be stored and that %s", async (_what, error, { from, to }) => {
  const { answer, duration } = await storeWith(() => Promise.reject(error()));
  expect(answer).toMatchObject({ [PARTS_KEY]: { media: MAX_MEDIA + 4 } });
  expect(duration).toBeGreaterThanOrEqual(from);
  expect(duration).toBeLessThanOrEqual(to);
});

test("an answer that is too long to keep without its files is dropped, and the job says so and why", async () => {
  const error = new NonRetryableError("the job's files come to more than 9 bytes");
  const { answer } = await storeWith(() => Promise.reject(error), 20_000_000);
  expect(answer).toMatchObject({
    isError: true,
    [RPC_FAILURE]: {
      message: expect.stringMatching(
        /^The server has done the call, and its answer was dropped: .* the job's files come to more than 9 bytes/,
      ),
    },
  });
});

test.each([
  // How many images of how many characters; how many become files of their own, how many share files, and how many files.
  [1_100, 3_900, 75, 0, 0],
  [5_000, 1_000, 100, 900, 2],
  [5_000, 3_600, 100, 3_789, 16],
  [7_000, 4_100, 100, 5_925, 28],
  [300, 100_000, 100, 160, 20],
])(
  "of %i images of %i characters, those for which the answer has no room become %i files, and %i more share %i",
  async (count, characters, ownFiles, sharedImages, sharedFiles) => {
    const files: { name: string; data: string; mimeType: string | undefined }[] = [];
    const file: Step["file"] = async (name, data, { mimeType } = {}) => {
      files.push({ name, data: String(data), mimeType });
      return { name, mimeType, size: 1, uri: `job://a/files/${files.length}/${name}` } as never;
    };
    const step = { file, signal: new AbortController().signal, log: { warn() {} } } as unknown as Step;
    const chunks: string[] = [];
    const create = async (_id: string, text: string) => void chunks.push(text);
    leaseOfStep.set(step, { id: "job", create } as unknown as Lease);
    const images = Array.from({ length: count }, (_, i) => {
      return { type: "image", mimeType: "image/png", data: String(i).padStart(characters, "A") };
    });
    const rest = count - ownFiles - sharedImages;
    const answer = await storeAnswer(step, { content: [{ type: "text", text: "Icons:" }, ...images] }, "acme");
    expect(answer).toMatchObject({ [PARTS_KEY]: { media: rest * characters } });
    expect(rest * characters).toBeLessThanOrEqual(MAX_MEDIA);
    expect((answer[PARTS_KEY] as { characters: number }).characters).toBeLessThanOrEqual(MAX_WHOLE_CHARACTERS);
    const bundles = files.filter(({ name }) => /^more-\d+\.json$/.test(name));
    expect([files.length, bundles.length]).toEqual([ownFiles + sharedFiles, sharedFiles]);
    // Clients read files of up to 1,000,000 bytes, and lists name the first ones alone.
    for (const { data } of bundles) expect(data.length).toBeLessThan(1_000_000);
    expect(files.slice(0, sharedFiles)).toEqual(bundles);
    expect(answer[FILES_KEY]).toHaveLength(files.length);
    // Every image is in the answer or in a file, and its index is known.
    const { content } = JSON.parse(chunks.join("")) as { content: { type: string; text?: string }[] };
    const more = bundles.flatMap(({ data }) => Object.entries(JSON.parse(data) as Record<string, unknown>));
    for (const [i, image] of more) expect(image).toEqual(images[Number(i) - 1]);
    expect(more).toHaveLength(sharedImages);
    expect(content.filter(({ type }) => type === "image")).toHaveLength(rest);
    expect(content[0]).toEqual({ type: "text", text: "Icons:" });
    const counts = content.flatMap(
      ({ text = "" }) => / and has (\d+) more images, sounds and files/.exec(text)?.[1] ?? [],
    );
    expect(counts.reduce((sum, n) => sum + Number(n), 0)).toBe(sharedImages);
  },
);

test("an answer is not kept without its file because the job is run elsewhere", async () => {
  const abort = new AbortController();
  const file = async () => {
    abort.abort(new Error("the lease is lost"));
    throw new Error("the store of files: fetch failed");
  };
  const step = { file, signal: abort.signal, log: { warn() {} } } as unknown as Step;
  await expect(storeAnswer(step, largeAnswer("acme://film.mp4"), "acme")).rejects.toThrow("the lease is lost");
});
