export * from "durable-mcp-edge/sdk";
