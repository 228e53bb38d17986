/** `durable-mcp-edge/sdk`: what the edge loads on demand, as a module of its own. */
export {
  buildOAuthProtectedResourceMetadata,
  createMcpHandler,
  getOAuthProtectedResourceMetadataUrl,
  hostHeaderValidationResponse,
  isJsonContentType,
  originValidationResponse,
  Server,
} from "@modelcontextprotocol/server";
export { fromJSONSchema } from "zod";
