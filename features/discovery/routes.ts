/** Serves the documents by which clients and directories learn of a server. */
import type { Route } from "../../core/tools/index.ts";
import type { DescribedServer } from "./documents.ts";

const DOCUMENTS = [
  { path: "/mcp/server-card", document: "card", type: "application/mcp-server-card+json" },
  { path: "/.well-known/ai-catalog.json", document: "catalog", type: "application/ai-catalog+json" },
] as const;

/** `describe`: the server at its configured address or else the one that a request reached. */
export const discoveryRoutes = (describe: (request: Request) => DescribedServer): Route[] =>
  DOCUMENTS.map(({ path, document, type }) => ({
    methods: ["GET"],
    paths: [path],
    isPublicDocument: true,
    load: async () => {
      const { documents } = await import("./documents.ts");
      return (c) => {
        const text = JSON.stringify(documents[document](describe(c.req.raw)));
        return c.body(text, 200, { "content-type": type, "cache-control": "public, max-age=3600" });
      };
    },
  }));
