import { PassThrough } from "node:stream";
import { expect, onTestFinished, test } from "vitest";
import { HostedTransport } from "../host/hosted-transport.ts";
import { logLines } from "./target.ts";

const log = { debug() {}, info() {}, warn() {}, error() {} };
const STDERR_LINE = "größer als 10 €";

test("a line of stderr that arrives byte by byte is logged as it was written", async () => {
  const stderr = new PassThrough();
  const lastLine = logLines(stderr, log);
  for (const byte of Buffer.from(`${STDERR_LINE}\n`)) stderr.write(Buffer.of(byte));
  await new Promise((resolve) => stderr.end().once("close", resolve));
  expect(lastLine()).toBe(STDERR_LINE);
});

test("so is a line of a program that outlives its worker", async () => {
  const script = `setInterval(() => {}, 1_000);
    const bytes = [...Buffer.from(${JSON.stringify(`${STDERR_LINE}\n`)})];
    const write = () => process.stderr.write(Buffer.of(bytes.shift()), () => bytes.length > 0 && setTimeout(write, 5));
    write();`;
  const program = { command: process.execPath, args: ["-e", script], env: {}, cwd: process.cwd() };
  const transport = await HostedTransport.use({ ...program, deployment: crypto.randomUUID(), keep: 60_000 });
  onTestFinished(() => transport.close());
  const line = Promise.withResolvers<unknown>();
  logLines(transport.stderr, { ...log, info: (_message, fields) => line.resolve(fields?.says) });
  await transport.start();
  expect(await line.promise).toBe(STDERR_LINE);
});
