/**
 * A server of both eras, over stdio, with tools that the 2026-07-28 revision cannot serve. Every call is a line of the file
 * `CALLS`: the tool and the era. With `NEWEST` the server has the 2026-07-28 revision only.
 */
import { appendFileSync } from "node:fs";
import { ProtocolError, Server } from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";

const inputSchema = { type: "object" as const };
const annotations = { readOnlyHint: true };
const UNAVAILABLE_TEXT = "elicitation via server-initiated requests is unavailable on 2026-07-28 connections.";

serveStdio(
  ({ era }) => {
    const server = new Server({ name: "eras", version: "1" }, { capabilities: { tools: {} } });
    server.setRequestHandler("tools/list", () => ({
      tools: [
        { name: "reads", inputSchema, annotations },
        { name: "writes", inputSchema },
        { name: "refuses", inputSchema },
        { name: "era", inputSchema },
      ],
    }));
    server.setRequestHandler("tools/call", ({ params: { name } }) => {
      appendFileSync(`${process.env.CALLS}`, `${name} ${era}\n`);
      if (era === "modern" && name === "refuses") throw new ProtocolError(-32021, UNAVAILABLE_TEXT);
      const isError = era === "modern" && name !== "era";
      return { isError, content: [{ type: "text", text: isError ? UNAVAILABLE_TEXT : era }] };
    });
    return server;
  },
  process.env.NEWEST ? { legacy: "reject" } : {},
);
