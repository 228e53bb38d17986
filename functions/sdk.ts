/** What the edge uses of the SDK besides its server. It is loaded on demand. */
export {
  buildOAuthProtectedResourceMetadata,
  getOAuthProtectedResourceMetadataUrl,
  hostHeaderValidationResponse,
  isJsonContentType,
  originValidationResponse,
} from "@modelcontextprotocol/server";
