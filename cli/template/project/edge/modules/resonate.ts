export { ObjectServer } from "durable-mcp-edge/resonate";
