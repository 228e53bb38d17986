import { expect, test } from "vitest";
import { FILES } from "../../../core/definitions/file.ts";
import { PARTS } from "../../../core/store/parts.ts";

import { toolAnswer } from "./outcome.ts";

test("a server's answer is passed on unchanged, without the fields about its connection", () => {
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
  // Only a worker may write a table of contents or refer to files, so these fields of a server are removed.
  expect(toolAnswer({ ...answer, [PARTS]: { id: "another's" }, [FILES]: [{ uri: "another's" }] })).toEqual(answer);
});
