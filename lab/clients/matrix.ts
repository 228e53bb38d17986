/** The tested clients and their packages. */

export interface MatrixClient {
  name: string;
  /** The first package has the client's version. */
  packages: readonly string[];
  /** A file in `drivers/`. */
  driver: string;
  ecosystem: "npm" | "python" | "go" | "rust" | "java";
}

const npm = (name: string, driver: string, ...packages: string[]): MatrixClient => ({
  name,
  packages,
  driver: `javascript/${driver}.mjs`,
  ecosystem: "npm",
});
const python = (name: string, driver: string, ...packages: string[]): MatrixClient => ({
  name,
  packages,
  driver: `python/${driver}.py`,
  ecosystem: "python",
});

/** Driven line by line by a program in the folder of `drivers/` that is named after its language. */
const bridged = (name: string, ecosystem: "go" | "rust" | "java", ...packages: string[]): MatrixClient => ({
  name,
  packages,
  driver: "javascript/bridge.mjs",
  ecosystem,
});

const SDK = "@modelcontextprotocol/sdk";

export const CLIENTS: readonly MatrixClient[] = [
  ...["1.10.0", "1.15.0", "1.20.0", "1.25.0", "1.32.2"].map((version) =>
    npm(`TypeScript SDK ${version}`, "sdk", `${SDK}@${version}`),
  ),
  npm("TypeScript SDK 2, ext-tasks", "client", "@modelcontextprotocol/client", "@modelcontextprotocol/ext-tasks@0.2.2"),
  npm("mcp-remote", "mcp-remote", "mcp-remote", `${SDK}@1.32.2`),
  npm("Inspector, command line", "inspector", "@modelcontextprotocol/inspector"),
  npm(
    "Inspector, page",
    "inspector-page",
    "@modelcontextprotocol/inspector@latest",
    "playwright-core",
    "@sparticuz/chromium",
  ),
  npm(
    "AI SDK",
    "frameworks/ai-sdk",
    ...["@ai-sdk/mcp", "ai", "@ai-sdk/google", "@ai-sdk/openai", "@ai-sdk/anthropic", "standardwebhooks"],
  ),
  npm("TanStack AI", "frameworks/tanstack", "@tanstack/ai-mcp", "@tanstack/ai", `${SDK}@1.32.2`),
  npm("LangChain (JavaScript)", "frameworks/langchain", "@langchain/mcp-adapters", "@langchain/core"),
  npm("OpenAI agents (JavaScript)", "frameworks/openai-agents", "@openai/agents", "zod"),
  npm("Mastra", "frameworks/mastra", "@mastra/mcp", "@mastra/core", "zod"),
  npm("mcporter", "mcporter", "mcporter"),
  // Version 2 has only a server, no client.
  npm("mcp-use (JavaScript)", "frameworks/mcp-use", "mcp-use@1", "langchain", "@langchain/core"),
  // It needs a version of Pydantic from its time.
  python("Python SDK 1.9", "mcp_sdk", "mcp==1.9.4", "pydantic<2.12"),
  python("Python SDK 1", "mcp_sdk", "mcp<2"),
  python("Python SDK 2", "mcp_sdk", "mcp>=2"),
  python("FastMCP, fastmcp-tasks", "fast_mcp", "fastmcp", "fastmcp-tasks"),
  python("LangChain (Python)", "lang_chain", "langchain-mcp-adapters"),
  python("OpenAI agents (Python)", "openai_agents", "openai-agents"),
  python("Pydantic AI", "pydantic_agents", "pydantic-ai-slim[mcp]"),
  python("Google Gen AI SDK (Python)", "genai", "google-genai", "mcp"),
  python("mcp-use (Python)", "mcp_use_client", "mcp-use"),
  python("Strands", "strands_agents", "strands-agents"),
  npm("Google Gen AI SDK (JavaScript)", "frameworks/genai", "@google/genai", `${SDK}@1.32.2`),
  bridged("Go SDK", "go", "github.com/modelcontextprotocol/go-sdk"),
  bridged("Rust SDK", "rust", "rmcp"),
  bridged("Java SDK", "java", "io.modelcontextprotocol.sdk:mcp"),
];
