import { expect, test } from "vitest";
import { withName } from "./message.ts";

test.each(["task", "=?base64?", "日".repeat(300_000), "A".repeat(900_000)])(
  "a task id of any length and script is named in a header (%#)",
  (taskId) => {
    const request = new Request("http://localhost/mcp", { method: "POST" });
    const message = { jsonrpc: "2.0", id: 1, method: "tasks/get", params: { taskId } } as const;
    const name = withName(request, message).headers.get("mcp-name") ?? "";
    const [, encoded] = /^=\?base64\?(.*)\?=$/.exec(name) ?? [];
    expect(encoded === undefined ? name : Buffer.from(encoded, "base64").toString()).toBe(taskId);
  },
);
