/** The settings with which a worker refuses to start, and its health before it has reached its server. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { freePort } from "../../../testing/stack/port.ts";
import { run, until } from "../../../testing/stack/program.ts";
import { ownGroup } from "../../../testing/stack/worker-process.ts";
import { serveNewerRelease } from "../../cli/doctor.ts";
import { startProtectedResonate } from "../../cli/protected-resonate.ts";
import { programOf } from "../../support/programs.ts";
import { type Resonate, startResonate } from "../../support/resonate.ts";

let resonate: Resonate;
beforeAll(async () => {
  resonate = await startResonate({ own: true });
});
afterAll(() => resonate?.[Symbol.asyncDispose]());

const start = (env: Record<string, string>) => run(programOf("worker"), { env: { HEALTH_PORT: "0", ...env } });

describe.concurrent("a worker does not start", () => {
  test("with a server of an unsupported release", async () => {
    await using newer = await serveNewerRelease(resonate.url);
    await using worker = start({ ...ownGroup().env, RESONATE_URL: String(newer.url) });
    expect(await worker.exited).toMatchObject({ exitCode: 1 });
    expect(worker.output()).toMatch(/not a Resonate server of release 0\.9\.8.*must be prefixed/);
  });

  test("in a container without the server's address", async () => {
    await using worker = start({ ...ownGroup().env, CONTAINER: "1", RESONATE_URL: "" });
    expect(await worker.exited).toMatchObject({ exitCode: 1 });
    expect(worker.logs()).toMatchObject([
      {
        level: "fatal",
        msg: "cannot start",
        reason: expect.stringContaining("RESONATE_URL: must be set in a container"),
      },
    ]);
  });

  test("with a token that is refused, or is for another namespace", async () => {
    await using guarded = await startProtectedResonate();
    const { group, env } = ownGroup();
    const tokens = ["none.such.token", await guarded.token({ prefix: "other/" })];
    for (const token of tokens) {
      await using worker = start({ ...env, RESONATE_URL: guarded.url, RESONATE_TOKEN: token });
      expect(await worker.exited).toMatchObject({ exitCode: 1 });
      expect(worker.output()).toContain("refuses RESONATE_TOKEN");
    }
    await using worker = start({
      ...env,
      RESONATE_URL: guarded.url,
      RESONATE_TOKEN: await guarded.token({ prefix: `${group}/` }),
    });
    await until("the worker to be ready", () => worker.logs().some(({ msg }) => msg === "ready"));
  });
});

test("a worker is unhealthy until it has reached its server", async () => {
  const [port, health] = [await freePort(), await freePort()];
  await using worker = start({
    ...ownGroup().env,
    RESONATE_URL: `http://127.0.0.1:${port}`,
    HEALTH_PORT: String(health),
  });
  const status = async () => (await fetch(`http://127.0.0.1:${health}/health`).catch(() => undefined))?.status;
  await until("the worker to answer", async () => (await status()) === 503);
  await using _late = await startResonate({ own: true, port });
  await until("the worker to be healthy", async () => (await status()) === 200, 30_000);
  expect(worker.output()).not.toContain("fatal");
});
