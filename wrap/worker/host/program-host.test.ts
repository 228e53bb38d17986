import { existsSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { HostedTransport } from "./hosted-transport.ts";
import { ID_PREFIX } from "./open-request.ts";

test("the end of a program is noticed even if its child holds its output open, and a request after it is not left without an answer", async () => {
  // The program ends at the first request.
  const script = `process.stdin.once("data", () => {
    require("node:child_process").spawn("sleep", ["30"], { stdio: "inherit", detached: true }).unref();
    process.stderr.write("ended");
    process.exit(1);
  });`;
  const program = { command: process.execPath, args: ["-e", script], env: { PATH: process.env.PATH ?? "" }, cwd: "/" };
  const transport = await HostedTransport.use({ ...program, deployment: crypto.randomUUID(), keep: 60_000 });
  onTestFinished(() => transport.close());
  const lostId = Promise.withResolvers<string>();
  const close = Promise.withResolvers<string>();
  transport.onAnswerLost = lostId.resolve;
  transport.onclose = () => close.resolve("closed");
  const hasEnded = new Promise((resolve) => transport.stderr.once("data", resolve));
  await transport.start();
  const call = (id: string) => transport.sendRecoverable({ jsonrpc: "2.0", id, method: "tools/call", params: {} });
  await call(`${ID_PREFIX}1`);
  await hasEnded;
  await new Promise((resolve) => setTimeout(resolve, 500));
  await call(`${ID_PREFIX}2`);
  expect(await lostId.promise).toBe(`${ID_PREFIX}2`);
  expect(await close.promise).toBe("closed");
}, 20_000);

test("the end of a program that reads no more is noticed, and its host ends, although the worker had more to send", async () => {
  const script = "setTimeout(() => process.exit(1), 1_000)";
  const program = { command: process.execPath, args: ["-e", script], env: { PATH: process.env.PATH ?? "" }, cwd: "/" };
  const transport = await HostedTransport.use({ ...program, deployment: crypto.randomUUID(), keep: 60_000 });
  onTestFinished(() => transport.close());
  const close = Promise.withResolvers<string>();
  transport.onclose = () => close.resolve("closed");
  await transport.start();
  const params = { text: "x".repeat(5_000_000) };
  void transport.sendRecoverable({ jsonrpc: "2.0", id: `${ID_PREFIX}1`, method: "tools/call", params });
  void transport.sendRecoverable({ jsonrpc: "2.0", id: `${ID_PREFIX}2`, method: "tools/call", params });
  expect(await close.promise).toBe("closed");
  const socket = join(tmpdir(), `durable-mcp-edge-${process.getuid?.()}`, transport.host);
  await expect.poll(() => existsSync(socket), { timeout: 10_000 }).toBe(false);
}, 20_000);
