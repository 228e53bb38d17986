export * from "durable-mcp-edge/resonate";
