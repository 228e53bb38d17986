/**
 * A server over stdio without a library. It has a tool `echo`, a tool `deep` with a schema of 8,000 levels, a tool `wide` of a
 * megabyte, and 200,000 others of a kilobyte each, in pages of 10,000.
 */
import { createInterface } from "node:readline";

const tool = (name: string, description: string, schema = '{"type":"object"}') =>
  `{"name":"${name}","description":"${description}","inputSchema":${schema}}`;
const deep = `${'{"type":"object","properties":{"a":'.repeat(8_000)}{}${"}}".repeat(8_000)}`;
const first = [
  tool("echo", "Echoes."),
  tool("deep", "Is deep.", deep),
  tool("wide", "x", `{"title":"${"x".repeat(1e6)}"}`),
];
const DESCRIPTION = "x".repeat(1_000);

function page(at: number): string {
  const tools = Array.from({ length: 10_000 }, (_, i) => tool(`tool_${at * 10_000 + i}`, DESCRIPTION));
  const next = at < 19 ? `,"nextCursor":"${at + 1}"` : "";
  return `{"tools":[${[...(at === 0 ? first : []), ...tools]}]${next}}`;
}

const serverInfo = { name: "endless", version: "1.0.0" };
for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, params } = JSON.parse(line);
  const results: Record<string, () => string> = {
    initialize: () =>
      JSON.stringify({ protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo }),
    ping: () => "{}",
    "tools/list": () => page(Number(params?.cursor ?? 0)),
    "tools/call": () => JSON.stringify({ content: [{ type: "text", text: "echoed" }] }),
  };
  const result = results[method]?.();
  const error = '"error":{"code":-32601,"message":"there is no such method"}';
  if (id !== undefined) {
    process.stdout.write(`{"jsonrpc":"2.0","id":${JSON.stringify(id)},${result ? `"result":${result}` : error}}\n`);
  }
}
