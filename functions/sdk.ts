/** `durable-mcp-edge/sdk`: what the edge needs of the SDK. A Worker has it as a module of its own, loaded when it is needed. */
export {
  buildOAuthProtectedResourceMetadata,
  createMcpHandler,
  getOAuthProtectedResourceMetadataUrl,
  hostHeaderValidationResponse,
  isJsonContentType,
  OAuthError,
  OAuthErrorCode,
  originValidationResponse,
  Server,
} from "@modelcontextprotocol/server";
