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
  expect(JSON.stringify(large)).toMatch(/answered with 12\d{5} bytes; up to 900000 are kept.*€{20000}"/);
});
