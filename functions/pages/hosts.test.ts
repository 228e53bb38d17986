import { expect, test } from "vitest";
import { hostSetups } from "./hosts.ts";

const server = { name: "jobs", url: "https://jobs.example/mcp" };

test("ten hosts have a set-up that names the server, and with a token also that", () => {
  const [open, signedIn] = [hostSetups(server), hostSetups({ ...server, token: "secret" })];
  expect(open.filter(({ id }) => id !== "other")).toHaveLength(10);
  for (const [i, { id, paste }] of open.entries()) {
    expect([id, paste]).toEqual([id, expect.stringContaining(server.url)]);
    expect([id, paste]).toEqual([id, expect.not.stringMatching(/authorization|bearer|undefined/i)]);
    // Codex takes it from the environment.
    const word = id === "codex" ? "MCP_TOKEN" : "Bearer secret";
    expect([id, signedIn[i]?.paste]).toEqual([id, expect.stringContaining(word)]);
  }
});

test("what goes into a file is a whole of its format", () => {
  for (const { id, file, paste } of hostSetups({ ...server, token: "secret" })) {
    // Lines of YAML that stand below a key are those of an object in JSON.
    if (file !== undefined) expect(() => JSON.parse(id === "goose" ? `{${paste}}` : paste), id).not.toThrow();
  }
});
