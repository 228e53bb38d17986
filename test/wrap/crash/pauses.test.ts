/** The pauses before a program that ends at once is started again grow up to a bound. */
import { mkdtemp, readFile, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterEach, expect, test, vi } from "vitest";
import { RetryableError } from "../../../core/author/context.ts";
import { WrappedServer } from "../../../wrap/worker/wrapped-server.ts";
import { COUNTING } from "../servers.ts";
import { SILENT_LOG } from "../support.ts";

/** Notes each start. The program ends at once, until the file `WORKS` exists: then it is a server. */
const PROGRAM = `
const { appendFileSync, existsSync } = require("node:fs");
appendFileSync(process.env.STARTS, "started\\n");
if (existsSync(process.env.WORKS)) import(process.env.COUNTING);
else { console.error("no config"); process.exit(1); }
`;

afterEach(() => vi.useRealTimers());

test.each([false, true])("the pauses before a program is started again (in a program host: %s)", async (isHosted) => {
  const folder = await mkdtemp(join(tmpdir(), "pauses-"));
  const [starts, works] = [join(folder, "starts"), join(folder, "works")];
  const env = { STARTS: starts, WORKS: works, COUNTING: pathToFileURL(COUNTING).href, CALLS: join(folder, "calls") };
  const server = new WrappedServer(
    { name: "broken", command: process.execPath, args: ["-e", PROGRAM], env },
    { ...process.env, RESONATE_URL: folder },
    isHosted,
  );
  const startTimes = async () => (await readFile(starts, "utf8").catch(() => "")).split("\n").length - 1;
  const fails = () =>
    server.connection("", SILENT_LOG).then(
      () => undefined,
      (error: Error) => error,
    );
  // Only the clock is fake; the program is really started.
  vi.useFakeTimers({ toFake: ["Date"] });
  const pauses: number[] = [];
  for (let i = 0; i < 8; i++) {
    const before = await startTimes();
    expect((await fails())?.message).toMatch(/broken cannot be reached: .*it wrote: no config/);
    const after = await startTimes();
    expect(after).toBeGreaterThan(before);
    const refusal = (await fails()) as RetryableError;
    expect(refusal).toBeInstanceOf(RetryableError);
    expect(refusal.message).toMatch(/it is tried again in \d+ s/);
    expect(await startTimes()).toBe(after);
    pauses.push(refusal.retryAfter);
    vi.setSystemTime(Date.now() + refusal.retryAfter);
  }
  expect(pauses).toEqual([500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000]);
  await writeFile(works, "");
  expect(await server.connection("", SILENT_LOG)).toMatchObject({ isOpen: true });
  await server.close();
});

test("a program that has ended is started once, however many calls wait for it", async () => {
  const env = { CALLS: join(await mkdtemp(join(tmpdir(), "pauses-")), "calls") };
  const server = new WrappedServer({ name: "one", command: process.execPath, args: [COUNTING], env }, process.env);
  const first = await server.connection("", SILENT_LOG);
  await first.close();
  vi.useFakeTimers({ toFake: ["Date"] });
  vi.setSystemTime(Date.now() + 60_000);
  const all = await Promise.all(Array.from({ length: 5 }, () => server.connection("", SILENT_LOG)));
  expect(new Set(all).size).toBe(1);
  expect(all[0]).not.toBe(first);
  await server.close();
});
