import { describe, expect, test, vi } from "vitest";
import { freePort } from "../../testing/stack/port.ts";
import { startResonate } from "../support/resonate.ts";
import { end, launch, takePort } from "./launcher.ts";

// Some of these tests start whole stacks, several at once.
vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 });

const args = ["--sample-weather", "--memory"];

describe.concurrent("before it starts anything", () => {
  test("it names all taken ports at once, and the options that choose others", async () => {
    using edge = await takePort();
    using resonate = await takePort();
    using worker = await takePort();
    const ports = { edge: edge.port, resonate: resonate.port, worker: worker.port };
    await using launcher = await launch({ args, via: "node", ports });
    expect(await launcher.exited).toMatchObject({ exitCode: 1 });
    expect(launcher.output().split("\n")).toEqual([
      `Port ${edge.port} is already in use. Choose another one for the edge with --port.`,
      `Port ${resonate.port} is already in use. Choose another one for Resonate with --resonate-port.`,
      `Port ${worker.port} is already in use. Choose another one for the worker with --worker-port.`,
      "",
    ]);
  });

  test("it says why a path cannot hold its state", async () => {
    await using launcher = await launch({ args: ["--data", import.meta.filename], via: "node" });
    expect(await launcher.exited).toMatchObject({ exitCode: 1 });
    const words = "(EEXIST). Choose another directory with --data.";
    expect(launcher.output()).toBe(`The state cannot be kept in ${import.meta.filename} ${words}\n`);
  });

  test("it refuses the same port for two processes", async () => {
    const port = await freePort();
    await using launcher = await launch({ args, via: "node", ports: { edge: port, worker: port } });
    expect(await launcher.exited).toMatchObject({ exitCode: 1 });
    expect(launcher.output()).toBe(`--port and --worker-port are both ${port}.\n`);
  });

  test.each([
    { wrong: ["--sample-wether"], says: "Unknown option '--sample-wether'" },
    { wrong: ["--port", "http"], says: '--port must be a port number from 1 to 65535, not "http"' },
    { wrong: ["--port", "65536"], says: '--port must be a port number from 1 to 65535, not "65536"' },
    { wrong: ["--data", "there"], says: "--memory and --data exclude each other" },
    { wrong: ["now"], says: "Unexpected argument 'now'" },
  ])("it answers $wrong with the error and the usage", async ({ wrong, says }) => {
    await using launcher = await launch({ args: [...args, ...wrong], via: "node" });
    expect(await launcher.exited).toMatchObject({ exitCode: 2 });
    expect(launcher.output()).toContain(says);
    expect(launcher.output()).toContain("Usage: npm start -- [options]");
  });

  test("--help lists the options", async () => {
    await using launcher = await launch({ args: ["--help"], via: "node" });
    expect(await launcher.exited).toMatchObject({ exitCode: 0 });
    expect(launcher.output()).toMatch(/--sample-weather.*--port.*--resonate-port.*--worker-port.*--data/s);
  });
});

describe.concurrent("its parts and services", () => {
  test("a process that cannot start ends the launcher, which prints the process's error", async () => {
    await using launcher = await launch({ args, via: "node", env: { UPSTREAM_CONCURRENCY: "none" } });
    expect(await launcher.exited).toMatchObject({ exitCode: 1 });
    expect(launcher.output()).toMatch(/the worker does not start \(exit code 1\)\. .*UPSTREAM_CONCURRENCY/s);
  });

  test("an unreachable archive is reported with a way around it, and does not prevent the start", async () => {
    const WEATHER_API_URL = `http://127.0.0.1:${await freePort()}/v1/archive`;
    await using launcher = await launch({ args: ["--memory"], via: "node", env: { WEATHER_API_URL } });
    const output = await launcher.printed("--sample-weather");
    expect(output).toContain("Ready.");
    expect(output).toContain(`${new URL(WEATHER_API_URL).host} cannot be reached`);
    await end(launcher);
  });

  test("a Resonate server at RESONATE_URL is used instead of the embedded one", async () => {
    await using resonate = await startResonate({ own: true });
    await using launcher = await launch({ args, via: "node", env: { RESONATE_URL: `${resonate.url}/` } });
    expect(await launcher.printed("Ready.")).toContain(`${resonate.url} (from RESONATE_URL)`);
    await expect(launcher.member("server/node/process.ts")).rejects.toThrow("0 processes");
    expect((await fetch(new URL("/ready", launcher.url))).status).toBe(200);
    await end(launcher);
  });

  test("a Resonate server at RESONATE_URL that does not answer is named", async () => {
    const RESONATE_URL = `http://127.0.0.1:${await freePort()}`;
    await using launcher = await launch({ args, via: "node", env: { RESONATE_URL } });
    expect(await launcher.exited).toMatchObject({ exitCode: 1 });
    expect(launcher.output()).toContain(`${RESONATE_URL} (RESONATE_URL) is not ready`);
  });
});
