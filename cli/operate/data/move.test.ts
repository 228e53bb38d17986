import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { beforeEach, expect, test, vi } from "vitest";
import { serveHttp } from "../../../testing/stack/http-server.ts";
import { type Line, writeBackup } from "../../backup/backup-file.ts";
import { run } from "./move.ts";

const CALLERS: Line[] = [
  { caller: "ada", table: "log", row: { epoch: "e" } },
  { caller: "ada", table: "schedules", row: { name: "nightly" } },
];

let file: string;
beforeEach(async () => {
  const folder = await mkdtemp(join(tmpdir(), "move-"));
  file = join(folder, "backup.ndjson");
  async function* pages() {
    yield [{ table: "promises", row: { id: "job" } } satisfies Line, ...CALLERS];
  }
  await writeBackup(file, { key: null }, pages());
  vi.stubEnv("OPERATOR_TOKEN", "token");
  return async () => {
    vi.unstubAllEnvs();
    await rm(folder, { recursive: true });
  };
});

/** An edge whose Resonate server is elsewhere, or not. `written`: the rows of callers that it receives. */
async function startEdge(isOwnServer: boolean) {
  const written: unknown[] = [];
  const server = await serveHttp(async (request, response) => {
    if (request.method === "POST") written.push(request.url, ...JSON.parse(await text(request)));
    response.end(JSON.stringify({ rows: [], isOwnServer }));
  });
  return { url: server.url, written, [Symbol.asyncDispose]: () => server[Symbol.asyncDispose]() };
}

test("what belongs to callers moves to the edge of a standalone server, without the jobs", async () => {
  await using edge = await startEdge(false);
  const log = vi.spyOn(console, "log").mockReturnValue();
  await run(["--from", file, "--url", edge.url]).finally(() => log.mockRestore());
  expect(edge.written).toEqual(["/operate/callers?", ...CALLERS]);
});

test("an edge that keeps its jobs itself is left as it is", async () => {
  await using edge = await startEdge(true);
  await expect(run(["--from", file, "--url", edge.url])).rejects.toThrow("keeps its jobs itself");
  expect(edge.written).toEqual([]);
});
