import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeEach, expect, test, vi } from "vitest";
import { serveHttp } from "../../testing/stack/http-server.ts";
import { lockDirectory } from "../launcher/data-directory.ts";
import type { Line } from "./backup-file.ts";
import { openServer } from "./paused-server.ts";

beforeEach(() => {
  vi.stubEnv("OPERATOR_TOKEN", "token");
  return () => vi.unstubAllEnvs();
});

async function* rows(): AsyncGenerator<Line> {
  yield { table: "promises", row: { id: "job" } };
}

test.each([
  ["stays paused if the answer to the first rows is lost, for these may be written", undefined, false],
  ["goes on if it refuses them", { refused: "The server has jobs already." }, true],
])("a deployment that is restored %s", async (_what, answer, goesOn) => {
  const requests: string[] = [];
  await using server = await serveHttp(({ url = "" }, response) => {
    const path = url.replace("/resonate/operate/", "");
    requests.push(path);
    if (!path.startsWith("rows")) response.end(JSON.stringify({ key: null }));
    else if (answer) response.end(JSON.stringify(answer));
    else response.destroy();
  });
  const restored = async () => {
    await using deployment = await openServer({ url: server.url, data: "" });
    await deployment.restore(deployment.head, rows());
  };
  await expect(restored()).rejects.toThrow(answer?.refused ?? "cannot be reached");
  expect(requests).toEqual(["rest?", "key?", "rows?first=", ...(goesOn ? ["wake?"] : [])]);
});

test("a backup of callers' objects alone is refused by a deployment with jobs, whose objects stay as they are", async () => {
  const requests: string[] = [];
  await using server = await serveHttp(({ url = "" }, response) => {
    const path = url.replace("/resonate/operate/", "");
    requests.push(path);
    response.end(JSON.stringify(path.startsWith("rows") ? { refused: "The server has jobs already." } : { key: null }));
  });
  async function* callerRows(): AsyncGenerator<Line> {
    yield { caller: "r", table: "notes", row: {} } as Line;
  }
  const restored = async () => {
    await using deployment = await openServer({ url: server.url, data: "" });
    await deployment.restore(deployment.head, callerRows());
  };
  await expect(restored()).rejects.toThrow("The server has jobs already.");
  expect(requests).toEqual(["rest?", "key?", "rows?first=", "wake?"]);
});

test("a backup fails if the server's pause has ended while the rows of callers were read, since jobs may have changed", async () => {
  const requests: string[] = [];
  const refused = "The server is not paused: what was read may have changed.";
  await using server = await serveHttp(({ url = "" }, response) => {
    const path = url.replace("/resonate/operate/", "").replace(/\?.*/, "");
    requests.push(path);
    const hasEnded = path === "rows" && requests.includes("/operate/callers");
    const answer = { rows: [], ...(path === "key" && { key: null }), ...(hasEnded && { refused }) };
    response.writeHead(hasEnded ? 409 : 200).end(JSON.stringify(answer));
  });
  const backup = async () => {
    await using deployment = await openServer({ url: server.url, data: "" });
    for await (const _page of deployment.pages());
  };
  await expect(backup()).rejects.toThrow(refused);
  expect(requests).toEqual(["rest", "key", "rows", "/operate/callers", "rows", "wake"]);
});

test("a folder without state is not backed up, and only a restore makes it one with state", async () => {
  const folder = await mkdtemp(join(tmpdir(), "paused-"));
  const data = join(folder, "data");
  await expect(openServer({ data })).rejects.toThrow(`There is no state in ${data}.`);
  expect(existsSync(data)).toBe(false);
  {
    await using server = await openServer({ data }, true);
    expect(await server.restore({ key: null }, none())).toBe(0);
  }
  {
    await using _server = await openServer({ data });
  }
  await rm(folder, { recursive: true });
});

test("a folder is used only by another restore until the restore into it has ended", async () => {
  const data = await mkdtemp(join(tmpdir(), "paused-"));
  async function* incomplete(count: number): AsyncGenerator<Line> {
    for (let n = 0; n < count; n++) yield { table: "callbacks", row: { awaited: `${n}`, awaiter: "job" } };
    throw new Error("backup is incomplete.");
  }
  const restore = async (lines: AsyncIterable<Line>) => {
    await using server = await openServer({ data }, true);
    await server.restore({ key: null }, lines);
  };
  await expect(restore(incomplete(1))).rejects.toThrow("backup is incomplete.");
  // Nothing was written.
  await (await openServer({ data }))[Symbol.asyncDispose]();
  await expect(restore(incomplete(1_000))).rejects.toThrow("backup is incomplete.");
  await expect(openServer({ data })).rejects.toThrow(`A restore into ${data} has not finished.`);
  await restore(none());
  await using _server = await openServer({ data });
  await rm(data, { recursive: true });
});

test("a folder is not backed up while a stack runs in it, even one whose Resonate server is elsewhere", async () => {
  const data = await mkdtemp(join(tmpdir(), "paused-"));
  await (await openServer({ data }, true))[Symbol.asyncDispose]();
  {
    using _stack = lockDirectory(data);
    await expect(openServer({ data })).rejects.toThrow(`It runs already, with its state in ${data}`);
  }
  await using _server = await openServer({ data });
  await rm(data, { recursive: true });
});

async function* none(): AsyncGenerator<Line> {}
