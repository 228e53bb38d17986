import { programPath } from "../package.ts";

/** The clients that `--config` knows. */
export const CLIENTS: readonly string[] = ["claude-code", "claude-desktop", "cursor", "vscode"];

export interface ClientConfiguration {
  /** Its name for `--config`. */
  id: string;
  client: string;
  where: string;
  paste: string;
}

/** The configuration of each MCP client for the server `name` at `url`, the `/mcp` endpoint, ready to paste. */
export function clientConfiguration(name: string, url: string): ClientConfiguration[] {
  // Claude Desktop speaks only stdio, and its PATH often has no Node: both paths are absolute.
  const proxy = { command: process.execPath, args: [programPath("cli/main"), "proxy", url] };
  return [
    {
      id: "claude-code",
      client: "Claude Code",
      where: "run in a terminal",
      paste: `claude mcp add --transport http ${name} ${url}`,
    },
    {
      id: "claude-desktop",
      client: "Claude Desktop",
      where: "claude_desktop_config.json (Settings > Developer > Edit Config)",
      paste: json({ mcpServers: { [name]: proxy } }),
    },
    {
      id: "cursor",
      client: "Cursor",
      where: "~/.cursor/mcp.json, or .cursor/mcp.json in a project",
      paste: json({ mcpServers: { [name]: { url } } }),
    },
    {
      id: "vscode",
      client: "VS Code",
      where: ".vscode/mcp.json in a workspace",
      paste: json({ servers: { [name]: { type: "http", url } } }),
    },
  ];
}

const json = (value: unknown) => JSON.stringify(value, undefined, 2);
