/** The paths of the public documents about a server, which `documents.ts` describes. */

export const CARD = "application/mcp-server-card+json";

export const DISCOVERY = [
  { path: "/mcp/server-card", document: "card", type: CARD },
  { path: "/.well-known/ai-catalog.json", document: "catalog", type: "application/ai-catalog+json" },
] as const;

export const CACHE_CONTROL = "public, max-age=3600";
