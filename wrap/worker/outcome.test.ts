import { expect, test } from "vitest";
import { toolAnswer } from "./outcome.ts";

test("what a server answers is passed on word for word, without what is about its connection", () => {
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
  const whole = { ...answer, resultType: "complete", _meta: { ..._meta, ...connection } };
  expect(toolAnswer(whole)).toEqual({ ...answer, _meta });
  expect(toolAnswer({ ...answer, _meta: connection })).toEqual(answer);
});

test("an answer is measured in bytes, and one that is too large says how large it is and how it begins", () => {
  const of = (text: string) => ({ content: [{ type: "text", text }] });
  const kept = of("x".repeat(850_000));
  expect(toolAnswer(kept)).toEqual(kept);
  // Three bytes each.
  const large = toolAnswer(of("€".repeat(400_000)));
  expect(large).toMatchObject({ isError: true });
  expect(JSON.stringify(large)).toMatch(/answered with 12\d{5} bytes; up to 900000 are kept/);
  expect(Buffer.byteLength(JSON.stringify(large))).toBeLessThan(900_000);
});

test("of an answer that is too large the parts are kept that fit, whole where they can be", () => {
  const image = (size: number) => ({ type: "image", data: "A".repeat(size), mimeType: "image/png" });
  const text = { type: "text", text: "\u0000😀".repeat(200_000), annotations: { priority: 1 } };
  const content = [image(100_000), image(1_000_000), image(200_000), text, image(500_000)];
  const large = toolAnswer({ content, structuredContent: { all: "x".repeat(1_000) } });
  const [words, first, second, beginning, ...none] = large.content as { text: string }[];
  expect(words?.text).toMatch(/of its 5 parts, 3 of them cut short or left out, and without its structured content/);
  expect([first, second]).toEqual([content[0], content[2]]);
  expect(beginning).toMatchObject({ type: "text", annotations: { priority: 1 } });
  expect(text.text.startsWith(beginning?.text ?? "?")).toBe(true);
  expect(none).toEqual([]);
  expect(Buffer.byteLength(JSON.stringify(large))).toBeGreaterThan(890_000);
  expect(Buffer.byteLength(JSON.stringify(large))).toBeLessThan(900_000);
});
