import { join } from "node:path";

const NAME = "durable-mcp-edge";

/** How each MCP client is told about the server at `url` (the `/mcp` endpoint), ready to paste. */
export function clientConfiguration(url: string): { client: string; where: string; paste: string }[] {
  // Claude Desktop speaks stdio only, and a desktop application's PATH often has no Node: both paths are absolute.
  const proxy = { command: process.execPath, args: [join(import.meta.dirname, "proxy.ts"), url] };
  return [
    {
      client: "Claude Code",
      where: "run in a terminal",
      paste: `claude mcp add --transport http ${NAME} ${url}`,
    },
    {
      client: "Claude Desktop",
      where: "claude_desktop_config.json (Settings > Developer > Edit Config)",
      paste: json({ mcpServers: { [NAME]: proxy } }),
    },
    {
      client: "Cursor",
      where: "~/.cursor/mcp.json, or .cursor/mcp.json in a project",
      paste: json({ mcpServers: { [NAME]: { url } } }),
    },
    {
      client: "VS Code",
      where: ".vscode/mcp.json in a workspace",
      paste: json({ servers: { [NAME]: { type: "http", url } } }),
    },
  ];
}

const json = (value: unknown) => JSON.stringify(value, undefined, 2);
