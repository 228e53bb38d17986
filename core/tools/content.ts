/** What a wrapped server answers, as content: without what only this server says. */
import type { CallToolResult } from "./mcp.ts";
import { JOB_SCHEME } from "./results.ts";

/** The keys of `_meta` that are this server's, or the protocol's between it and its clients. */
const OURS = /^(view_url|ui|durable-mcp\/.*|([^/]*\.)?(modelcontextprotocol|mcp)(\.[^/]*)?\/.*)$/;

/** The answer without fields of this server's: they would be taken for its word. */
export function asContent(stored: unknown): CallToolResult {
  const { resultType: _, _meta, content, ...answer } = stored as CallToolResult & { resultType?: unknown };
  const meta = Object.entries({ ..._meta }).filter(([key]) => !OURS.test(key));
  return {
    ...answer,
    content: Array.isArray(content) ? content.map(withoutJobLink) : [],
    ...(meta.length > 0 && { _meta: Object.fromEntries(meta) }),
  };
}

/** A link to a job that the server has made up is shown as text. */
function withoutJobLink(part: CallToolResult["content"][number]): CallToolResult["content"][number] {
  const { uri } = part.type === "resource" ? part.resource : (part as { uri?: unknown });
  if (typeof uri !== "string" || !uri.toLowerCase().startsWith(JOB_SCHEME)) return part;
  return { type: "text", text: JSON.stringify(part) };
}
