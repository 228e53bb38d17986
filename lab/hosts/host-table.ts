/** The hosts, and how each is connected to a model and run without a person. */
import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";

/** How a host's model finds deferred tools, and calls them. */
export interface Search {
  tool: string;
  args(query: string): object;
  /** The tool that calls a found tool, if the model may not call it directly. */
  through?: { tool: string; args(name: string, args: object): object };
}

export interface Host {
  name: string;
  /** The host's id for `--config`. */
  id: string;
  package: string;
  version: string;
  command: string;
  /** The tool that finds other tools, if the host defers them. */
  search?: Search;
  /** Files below its home folder, by path, that name the model and answer the questions of the first start. */
  files?(model: string, cwd: string): Record<string, object | string>;
  /** The arguments that set its model once, if files do not. */
  prepare?(model: string): string[];
  env?(model: string): Record<string, string>;
  /** The arguments that run one prompt to its end, in a new conversation or in the last one, whose id is `last`. */
  run(prompt: string, model: string, last?: string): string[];
  /** For hosts whose calls are tasks in a terminal: the arguments that run a prompt there, or without one resume the last conversation. */
  inTerminal?(prompt?: string): string[];
  /** The arguments that print its conversations as JSON, latest first, if it resumes them in a terminal by id. */
  conversations?: string[];
  /** The arguments that sign in at the server, if the host has a command for that. */
  login?: string[];
}

/** The server's name in every set-up. */
export const SERVER = "durable-mcp-edge";

const KEY = "a-key-of-no-vendor";
const MODEL = "scripted";

export const HOSTS: readonly Host[] = [
  {
    name: "Claude Code",
    id: "claude-code",
    package: "@anthropic-ai/claude-code",
    version: "2.1.330",
    command: "claude",
    search: { tool: "ToolSearch", args: (query) => ({ query, max_results: 5 }) },
    files: (_model, cwd) => ({
      ".claude.json": {
        hasCompletedOnboarding: true,
        theme: "dark",
        customApiKeyResponses: { approved: [KEY.slice(-20)], rejected: [] },
        projects: { [cwd]: { hasTrustDialogAccepted: true, hasCompletedProjectOnboarding: true } },
      },
    }),
    env: (model) => ({
      ANTHROPIC_BASE_URL: model,
      ANTHROPIC_API_KEY: KEY,
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
      DISABLE_AUTOUPDATER: "1",
      ENABLE_TOOL_SEARCH: "true",
    }),
    run: (prompt, _model, last) => [
      ...(last ? ["--continue"] : []),
      ...["-p", prompt, "--allowedTools", `mcp__${SERVER}`],
    ],
    inTerminal: (prompt = "--continue") => [prompt, "--allowedTools", `mcp__${SERVER}`],
    login: ["mcp", "login", SERVER],
  },
  {
    name: "Codex",
    id: "codex",
    package: "@openai/codex",
    version: "0.169.0",
    command: "codex",
    search: { tool: "tool_search", args: (query) => ({ query, limit: 8 }) },
    env: () => ({ SCRIPTED_KEY: KEY }),
    run: (prompt, model, last) => [
      ...["exec", ...(last ? ["resume", "--last"] : [])],
      ...["--skip-git-repo-check", ...codexModel(model), prompt],
    ],
    login: ["mcp", "login", SERVER],
  },
  {
    name: "Gemini CLI",
    id: "gemini",
    package: "@google/gemini-cli",
    version: "0.61.0",
    command: "gemini",
    files: () => ({
      ".gemini/settings.json": {
        security: { auth: { selectedType: "gemini-api-key" } },
        privacy: { usageStatisticsEnabled: false },
        general: { enableAutoUpdate: false },
      },
    }),
    env: (model) => ({ GEMINI_API_KEY: KEY, GOOGLE_GEMINI_BASE_URL: model }),
    run: (prompt, _model, last) => [
      ...(last ? ["--resume", "latest"] : []),
      ...["--skip-trust", "--yolo", "-m", "gemini-2.5-flash", "-p", prompt],
    ],
  },
  {
    name: "Qwen Code",
    id: "qwen",
    package: "@qwen-code/qwen-code",
    version: "0.24.4",
    command: "qwen",
    search: {
      tool: "tool_search",
      args: (query) => ({ query }),
      through: { tool: "tool_call", args: (name, args) => ({ name, arguments: args }) },
    },
    files: () => ({ ".qwen/settings.json": { privacy: { usageStatisticsEnabled: false } } }),
    env: (model) => ({ OPENAI_API_KEY: KEY, OPENAI_BASE_URL: `${model}/v1`, OPENAI_MODEL: MODEL }),
    run: (prompt, _model, last) => [...["--auth-type", "openai", "--yolo"], ...(last ? ["--continue"] : []), prompt],
  },
  {
    name: "opencode",
    id: "opencode",
    package: "opencode-ai",
    version: "1.18.33",
    command: "opencode",
    files: (model) => ({
      ".config/opencode/opencode.json": {
        autoupdate: false,
        share: "disabled",
        provider: {
          scripted: {
            npm: "@ai-sdk/openai-compatible",
            options: { baseURL: `${model}/v1`, apiKey: KEY },
            models: { [MODEL]: { tool_call: true } },
          },
        },
      },
    }),
    env: () => ({ OPENCODE_DISABLE_MODELS_FETCH: "1", OPENCODE_DISABLE_AUTOUPDATE: "1" }),
    run: (prompt, _model, last) => [
      ...["run", ...(last ? ["--continue"] : [])],
      ...["-m", `scripted/${MODEL}`, prompt],
    ],
    login: ["mcp", "auth", SERVER],
  },
  {
    name: "Cline",
    id: "cline",
    package: "cline",
    version: "3.0.65",
    command: "cline",
    prepare: (model) => ["auth", "-p", "openai-compatible", "-k", KEY, "-m", MODEL, "-b", `${model}/v1`],
    conversations: ["history", "--json", "--limit", "1"],
    run: (prompt, _model, last) => [
      ...["-P", "openai-compatible", "-k", KEY, "-m", MODEL],
      ...(last ? ["--id", last] : []),
      prompt,
    ],
  },
];

/** Codex takes its model from options, which hold for one run. */
function codexModel(model: string): string[] {
  const provider = `{name="scripted",base_url="${model}/v1",env_key="SCRIPTED_KEY",wire_api="responses"}`;
  return ["-c", `model_providers.scripted=${provider}`, "-c", 'model_provider="scripted"', "-m", MODEL];
}

/** Writes a host's files below its home. */
export async function writeFiles({ files }: Host, home: string, cwd: string, model: string): Promise<void> {
  for (const [path, content] of Object.entries(files?.(model, cwd) ?? {})) {
    const file = join(home, path);
    await mkdir(dirname(file), { recursive: true });
    await writeFile(file, typeof content === "string" ? content : JSON.stringify(content));
  }
}
