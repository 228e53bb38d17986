import { expect, test } from "vitest";
import { hostSetups } from "./host-setups.ts";

const server = { name: "jobs", url: "https://jobs.example/mcp" };

test("the set-ups of ten hosts name the server, and its token if there is one", () => {
  const [open, signedIn] = [hostSetups(server), hostSetups({ ...server, token: "secret" })];
  expect(open.filter(({ id }) => id !== "other")).toHaveLength(10);
  for (const [i, { id, paste }] of open.entries()) {
    expect([id, paste]).toEqual([id, expect.stringContaining(server.url)]);
    expect([id, paste]).toEqual([id, expect.not.stringMatching(/authorization|bearer|undefined/i)]);
    // Codex takes the token from the environment.
    const word = id === "codex" ? "MCP_TOKEN" : "Bearer secret";
    expect([id, signedIn[i]?.paste]).toEqual([id, expect.stringContaining(word)]);
  }
});

test("text for a file is valid in the file's format", () => {
  for (const { id, file, paste } of hostSetups({ ...server, token: "secret" })) {
    // The lines for YAML go below a key: they are the members of a JSON object.
    if (file !== undefined) expect(() => JSON.parse(id === "goose" ? `{${paste}}` : paste), id).not.toThrow();
  }
});

test("a shell leaves the words of each command as they are", () => {
  for (const { id, file, paste } of hostSetups({ ...server, token: "secret" })) {
    if (file !== undefined || id === "other") continue;
    // zsh refuses a command with an unquoted ? in it, unless a file has such a name.
    expect([id, paste.replace(/"[^"]*"/g, "")]).toEqual([id, expect.not.stringMatching(/[?*&[\]$;|<>`'"]/)]);
  }
});
