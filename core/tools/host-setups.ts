/** How a server is set up in each MCP host. */

export interface HostSetup {
  /** Its name for `--config`. */
  id: string;
  host: string;
  /** Where `paste` goes; undefined for a command of a terminal. */
  file?: string;
  paste: string;
}

export interface Server {
  name: string;
  url: string;
  /** The token that callers send, or a placeholder. */
  token?: string | undefined;
}

/**
 * The set-up of each host, ready to paste. `proxy` connects hosts that speak only stdio. A token that hosts take from the
 * environment is in `MCP_TOKEN`.
 */
export function hostSetups({ name, url, token }: Server, proxy?: { command: string; args: string[] }): HostSetup[] {
  const authorization = token === undefined ? undefined : `Bearer ${token}`;
  const headers = authorization === undefined ? undefined : { Authorization: authorization };
  const header = authorization === undefined ? "" : ` --header "Authorization: ${authorization}"`;
  const remote = ["-y", "mcp-remote", url, ...(authorization ? ["--header", `Authorization: ${authorization}`] : [])];
  const stdio = proxy ?? { command: "npx", args: remote };
  return [
    { id: "claude-code", host: "Claude Code", paste: `claude mcp add --transport http ${name} ${url}${header}` },
    {
      id: "claude-desktop",
      host: "Claude Desktop",
      file: "claude_desktop_config.json (Settings > Developer > Edit Config)",
      paste: json({ mcpServers: { [name]: stdio } }),
    },
    {
      id: "cursor",
      host: "Cursor",
      file: "~/.cursor/mcp.json, or .cursor/mcp.json in a project",
      paste: json({ mcpServers: { [name]: { url, headers } } }),
    },
    {
      id: "vscode",
      host: "VS Code",
      file: ".vscode/mcp.json in a workspace",
      paste: json({ servers: { [name]: { type: "http", url, headers } } }),
    },
    {
      id: "codex",
      host: "Codex",
      paste: `codex mcp add ${name} --url ${url}${token === undefined ? "" : " --bearer-token-env-var MCP_TOKEN"}`,
    },
    {
      id: "gemini",
      host: "Gemini CLI",
      paste: `gemini mcp add --scope user --transport http ${name} ${url}${header}`,
    },
    { id: "qwen", host: "Qwen Code", paste: `qwen mcp add --transport http ${name} ${url}${header}` },
    {
      id: "opencode",
      host: "opencode",
      paste: `opencode mcp add ${name} --url ${url}${header.replace("Authorization: ", "Authorization=")}`,
    },
    // Cline gives its model both the text of a result and the structured content that repeats it.
    { id: "cline", host: "Cline", paste: `cline mcp add ${name} "${url}?text=once" --transport http${header} --yes` },
    {
      id: "goose",
      host: "Goose",
      file: "~/.config/goose/config.yaml, under extensions",
      // JSON is YAML.
      paste: json({ [name]: { name, type: "streamable_http", uri: url, headers, enabled: true, timeout: 300 } }).slice(
        2,
        -2,
      ),
    },
    { id: "other", host: "Any other", paste: json({ mcpServers: { [name]: { url, headers } } }) },
  ];
}

const json = (value: unknown) => JSON.stringify(value, undefined, 2);

export const HOSTS: readonly string[] = hostSetups({ name: "", url: "" }).map(({ id }) => id);
