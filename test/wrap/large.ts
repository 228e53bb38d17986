/** A server over stdio with large answers: a text, an image, structured content, resources. `SIZE` multiplies their sizes. */
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import * as z from "zod";

const TEXT_BYTES = 1_000_000 * Number(process.env.SIZE ?? 1);

/** Incompressible bytes, the same each time. */
function bytes(size: number): Buffer {
  let x = 42;
  return Buffer.from(
    Uint8Array.from({ length: size }, () => {
      x = (Math.imul(x, 1_664_525) + 1_013_904_223) >>> 0;
      return x >>> 24;
    }),
  );
}

/** Text that is awkward to encode: quotes, backslashes, control characters, and characters of two to four bytes. */
function text(size: number): string {
  const line = (n: number) => `${n} "quoted" C:\\path\ttab \u0001 é € 😀 ${"x".repeat(n % 40)}\n`;
  let all = "";
  for (let n = 0, length = 0; length < size; n++) {
    all += line(n);
    length += Buffer.byteLength(line(n));
  }
  return all;
}

const row = z.object({ id: z.number(), name: z.string(), tags: z.array(z.string()) });
const Report = { rows: z.array(row), total: z.number(), by: z.object({ name: z.string(), notes: z.string() }) };

const server = new McpServer({ name: "large", version: "1.0.0" });
server.registerTool("text", {}, () => ({ content: [{ type: "text", text: text(TEXT_BYTES) }] }));
server.registerTool("image", {}, () => ({
  content: [
    { type: "text", text: "a large one" },
    {
      type: "image",
      data: bytes(0.75 * TEXT_BYTES).toString("base64"),
      mimeType: "image/png",
      annotations: { priority: 1 },
    },
  ],
}));
server.registerTool("report", { outputSchema: Report }, () => {
  const rows = Array.from({ length: TEXT_BYTES / 200 }, (_, id) => ({
    id,
    name: `row "${id}" €`,
    tags: ["a", "😀", "\\"],
  }));
  const structuredContent = {
    rows,
    total: rows.length,
    by: { name: "a server", notes: "n".repeat(0.75 * TEXT_BYTES) },
  };
  return { structuredContent, content: [{ type: "text", text: "a report" }] };
});
server.registerTool("fails", {}, () => ({ isError: true, content: [{ type: "text", text: text(TEXT_BYTES) }] }));
server.registerResource("image", "large://image", {}, ({ href: uri }) => ({
  contents: [{ uri, mimeType: "image/png", blob: bytes(0.75 * TEXT_BYTES).toString("base64") }],
}));
server.registerResource("film", "large://film", {}, ({ href: uri }) => ({
  contents: [{ uri, mimeType: "video/mp4", blob: bytes(4 * TEXT_BYTES).toString("base64") }],
}));
await server.connect(new StdioServerTransport());
