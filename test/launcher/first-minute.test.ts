/** Problems that users may have when they start the product for the first and the second time. */
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { execa } from "execa";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { openReverseProxy } from "../../cli/process/replaceable-service.ts";
import { freePort } from "../../testing/stack/port.ts";
import { run, until } from "../../testing/stack/program.ts";
import { startResonate } from "../support/resonate.ts";
import { end, type Launcher, launch, takePort } from "./launcher.ts";
import { folder } from "./project.ts";

// Some of these tests start whole stacks, several at once.
vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 });

/** The URL in a banner. */
function urlIn(output: string): string {
  const [, url] = /MCP endpoint +(\S+)/.exec(output) ?? [];
  if (url === undefined) throw new Error(`no URL in ${output}`);
  return url;
}

async function durable(args: string[], env: Record<string, string> = {}) {
  const command = ["cli/main.ts", ...args];
  const result = await execa(process.execPath, command, {
    env: { RESONATE_URL: "", ...env },
    all: true,
    reject: false,
  });
  return { exitCode: result.exitCode, output: result.all };
}

describe.concurrent("ports", () => {
  test("if a default is taken, the next free port is used, and later starts use it too, even if the default is free", async () => {
    await using data = await folder();
    // Another program may have the port already.
    const taken = await takePort(8787).catch(() => undefined);
    const asked = ["--resonate-port", await freePort(), "--worker-port", await freePort()].map(String);
    const options = { args: [...asked, "--data", data.path], via: "node" as const, ports: false as const };
    await using first = await launch(options);
    const output = await first.printed("Ready.");
    const url = urlIn(output);
    const port = Number(new URL(url).port);
    expect(port).toBeGreaterThan(8787);
    expect(output).toContain(`Port 8787 is taken by something else: the edge is on ${port}.`);
    expect((await fetch(new URL("/health", url))).status).toBe(200);
    await end(first);
    taken?.[Symbol.dispose]();

    await using second = await launch(options);
    expect(urlIn(await second.printed("Ready."))).toBe(url);
    const { output: configuration } = await durable(["start", "--data", data.path, "--config", "cursor"]);
    expect(configuration).toContain(`"url": "${url}"`);
    await end(second);
  });
});

describe.concurrent("a second start on the same state", () => {
  test("says where the first one runs, and exits; after the first one was killed, it starts", async () => {
    await using data = await folder();
    const args = ["--data", data.path];
    await using first = await launch({ args, via: "node" });
    await first.printed("Ready.");
    await using second = await launch({ args, via: "node" });
    expect(await second.exited).toMatchObject({ exitCode: 1 });
    expect(second.output()).toBe(
      `It runs already at ${first.url}, with its state in ${data.path}, unless a backup or restore uses that now.\n`,
    );

    first.signal("SIGKILL");
    await using third = await launch({ args, via: "node" });
    await third.printed("Ready.");
    expect((await fetch(new URL("/ready", third.url))).status).toBe(200);
    await end(third);
  });

  test("is refused as well if a separate embedded server uses that state", async () => {
    await using data = await folder();
    await using resonate = run("cli/main.ts", { args: ["resonate", "--data", data.path, "--port", "0"] });
    await until("the server to be ready", () => resonate.logs().find(({ msg }) => msg === "ready"));
    await using launcher = await launch({ args: ["--data", data.path], via: "node" });
    expect(await launcher.exited).toMatchObject({ exitCode: 1 });
    expect(launcher.output()).toMatch(/^The state in \S+ is in use by another Resonate server\. .*--data\.\n$/);
  });
});

describe.concurrent("options that npm keeps for itself", () => {
  test.each([
    [["--port", "1"], "npm start -- --port 1"],
    [["--port=1"], "npm start -- --port 1"],
    [["--memory", "--sample-weather"], "npm start -- --sample-weather --memory"],
  ])("npm start %j is answered with the correct command", async (args, right) => {
    const { exitCode, stderr } = await execa("npm", ["start", ...args], { reject: false });
    expect([exitCode, stderr]).toEqual([2, expect.stringContaining(`Type: ${right}`)]);
  });
});

describe.concurrent("a busy machine", () => {
  test("the launcher waits for a slow part, and says which one it waits for", async () => {
    await using launcher = await launch({ args: ["--memory"], via: "node" });
    const { pid } = await until("the worker", () => launcher.member("worker/main.ts").catch(() => undefined));
    process.kill(pid, "SIGSTOP");
    const output = await launcher.printed("Waiting for the worker to answer at ");
    expect(output).toContain(`http://127.0.0.1:${launcher.ports.worker}/health`);
    process.kill(pid, "SIGCONT");
    await launcher.printed("Ready.");
    await end(launcher);
  });

  test("the launcher also waits for a slow Resonate server at RESONATE_URL", async () => {
    await using resonate = await startResonate({ own: true });
    const port = await freePort();
    const slow = await openReverseProxy("127.0.0.1", port);
    const env = { RESONATE_URL: `http://127.0.0.1:${port}` };
    await using launcher = await launch({ args: ["--memory"], via: "node", env });
    await launcher.printed("Waiting for RESONATE_URL");
    slow.forwardTo(Number(new URL(resonate.url).port));
    await launcher.printed("Ready.");
    await end(launcher);
    slow.close();
  });
});

describe("a running stack", () => {
  const cleanup = new AsyncDisposableStack();
  let data: string;
  let launcher: Launcher;
  beforeAll(async () => {
    data = cleanup.use(await folder()).path;
    const BROWSER = join(data, "browser");
    await writeFile(BROWSER, `#!/bin/sh\nprintf %s "$1" >${join(data, "opened")}\n`, { mode: 0o755 });
    launcher = cleanup.use(await launch({ args: ["--data", data, "--open"], via: "node", env: { BROWSER } }));
    await launcher.printed("Ready.");
  });
  afterAll(() => cleanup.disposeAsync());

  test("prints a banner that fits a screen, client configurations with --config, and opens the front page with --open", async () => {
    const { url } = launcher;
    const output = launcher.output();
    await vi.waitFor(
      async () => expect(await readFile(join(data, "opened"), "utf8")).toBe(new URL(url).origin),
      30_000,
    );
    expect(output.trim().split("\n").length).toBeLessThan(24);
    expect(output).toContain(`Claude Code     claude mcp add --transport http durable-mcp-edge ${url}`);
    const config = async (client: string) => {
      expect(output).toContain(`npm start -- --config ${client} --data ${data}`);
      const { exitCode, output: text } = await durable(["start", "--config", client, "--data", data]);
      expect(exitCode).toBe(0);
      return JSON.parse(text.slice(text.indexOf("{")));
    };
    const { output: codex } = await durable(["start", "--config", "codex", "--data", data]);
    expect(codex).toContain(`codex mcp add durable-mcp-edge --url ${url}`);
    expect(await config("cursor")).toEqual({ mcpServers: { "durable-mcp-edge": { url } } });
    expect(await config("vscode")).toEqual({ servers: { "durable-mcp-edge": { type: "http", url } } });
    const { mcpServers } = await config("claude-desktop");
    const client = new Client({ name: "desktop", version: "1" });
    const command = { ...mcpServers["durable-mcp-edge"], cwd: "/", env: { HOME: data }, stderr: "ignore" as const };
    await client.connect(new StdioClientTransport(command));
    expect((await client.listTools()).tools.map(({ name }) => name)).toContain("await_result");
    await client.close();
    const unknown = await durable(["start", "--config", "emacs"]);
    expect([unknown.exitCode, unknown.output]).toEqual([2, expect.stringContaining("claude-code, claude-desktop")]);
  });

  test("is examined by the doctor without arguments, which otherwise says how to start one", async () => {
    const healthy = await durable(["doctor", "--data", data]);
    expect(healthy.exitCode, healthy.output).toBe(0);
    expect(healthy.output).toMatch(new RegExp(`^ok +edge +answers at ${new URL(launcher.url).origin}$`, "m"));
    for (const check of ["one-second timer", "Resonate", "worker"]) {
      expect(healthy.output).toMatch(new RegExp(`^ok +${check} `, "m"));
    }
    await end(launcher);
    const gone = await durable(["doctor", "--data", data]);
    expect(gone.exitCode).toBe(1);
    expect(gone.output).toMatch(/^FAILED +stack +no stack answers at http:\S+\n +→ Start it: npm start\. /);
    expect(gone.output).toContain("npm run doctor -- --url URL");
  });
});

describe.concurrent("the state of a server that ran alone", () => {
  test("is opened, and its jobs go on", async () => {
    await using data = await folder();
    const id = "timer_old";
    {
      await using old = await startResonate({ own: true, args: ["--data", data.path] });
      const fires_at = new Date(Date.now() + 1_000).toISOString();
      await old.start({ id, func: "timer", args: { timer_name: "old", fires_at } });
    }
    await using launcher = await launch({ args: ["--data", data.path], via: "node" });
    await launcher.printed("complete timer_old");
    await end(launcher);
  });
});
