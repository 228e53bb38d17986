import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { callerOf } from "../../core/author/index.ts";
import { CARD_FILES } from "../../core/tools/index.ts";
import { Seal } from "../../functions/auth/seal.ts";
import { MAX_STALL_MS } from "../../functions/http/event-stream.ts";
import { bodyOf } from "./download.ts";
import { Files } from "./files.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** A download of 100 chunks, its slot, and how many chunks of its file were read. */
function download() {
  const slot = { renew: vi.fn(), release: vi.fn() };
  const state = { chunkCount: 0, isEnded: false };
  async function* chunks() {
    try {
      for (; state.chunkCount < 100; state.chunkCount++) yield new Uint8Array(1_000);
    } finally {
      state.isEnded = true;
    }
  }
  return { slot, state, reader: bodyOf(chunks(), new TransformStream(), slot).getReader() };
}

test("a download that nobody reads takes a few chunks of its file, and ends after a while with its slot", async () => {
  const { slot, state, reader } = download();
  await vi.advanceTimersByTimeAsync(MAX_STALL_MS - 4_000);
  expect([state.chunkCount < 5, slot.release.mock.calls.length]).toEqual([true, 0]);
  await vi.advanceTimersByTimeAsync(8_000);
  expect([state.isEnded, slot.release.mock.calls.length]).toEqual([true, 1]);
  await expect(reader.read()).rejects.toThrow("not read");
});

test("a slow download goes on, holds its slot, and is complete", async () => {
  const { slot, reader } = download();
  let size = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    size += value.length;
    expect(slot.release).not.toHaveBeenCalled();
    await vi.advanceTimersByTimeAsync(5_000);
  }
  await vi.advanceTimersByTimeAsync(1);
  expect([size, slot.release.mock.calls.length]).toEqual([100_000, 1]);
});

test("an address of a file that was given away is void while links are off, and opens again when they are on", async () => {
  const seal = new Seal("a key of at least thirty-two characters");
  const filesOf = (VIEW_LINKS: "on" | "off") =>
    new Files({}, { config: { PUBLIC_URL: "https://edge.example", VIEW_LINKS }, seal } as never);
  const caller = await callerOf("ada");
  const uri = "job://report_a/files/chart";
  const { structuredContent } = await filesOf("on").withAddresses(
    { content: [], structuredContent: { [CARD_FILES]: [{ uri }] } } as never,
    caller,
  );
  const [{ url }] = (structuredContent as Record<string, [{ url: string }]>)[CARD_FILES] as [{ url: string }];
  const tries = { add: vi.fn() };
  const download = async (links: "on" | "off") => {
    const store = { as: () => ({ get: async () => undefined }) };
    const options = { refusalOf: async () => undefined, tries, store } as never;
    const answer = await filesOf(links).download(new Request(url), url.split("/").at(-1) ?? "", options);
    return [answer.status, await answer.text()];
  };
  expect(await download("off")).toEqual([404, expect.stringContaining("void")]);
  expect(tries.add).toHaveBeenCalledTimes(1);
  // The address is valid; this test has no such file.
  expect(await download("on")).toEqual([404, expect.stringContaining("gone")]);
});
