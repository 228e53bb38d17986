/** Servers from npm and PyPI, installed outside the checkout, with sample calls of their tools. */
import { mkdir, mkdtemp, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { execa } from "execa";
import { serveHttp } from "../../testing/stack/http-server.ts";

type Args = Record<string, unknown>;
type Call = readonly [tool: string, args?: Args];

export interface RealServer {
  name: string;
  command: string;
  args: readonly string[];
  /** The server's environment, for the instance that is called directly or for the wrapped one. */
  env(which: string): Record<string, string>;
  calls: readonly Call[];
  /** Whether the server is reached over HTTP, at `PORT`. */
  overHttp?: true;
  /** A call that reports progress, and a call that can be cancelled. */
  progress?: Call;
  cancel?: Call;
  prompts: readonly [name: string, args?: Record<string, string>][];
  [Symbol.asyncDispose]?(): Promise<void>;
}

const NPM = [
  ...["everything", "filesystem", "memory", "sequential-thinking"].map(
    (name) => `@modelcontextprotocol/server-${name}`,
  ),
  "@playwright/mcp",
];
/** The packages by environment. They need different versions of one dependency; the SQLite server needs an old one without saying so. */
const PYPI: Readonly<Record<string, readonly string[]>> = {
  venv: ["mcp-server-git", "mcp-server-time", "mcp-server-fetch"],
  "venv-sqlite": ["mcp-server-sqlite", "mcp<2"],
  "venv-fastmcp": ["fastmcp"],
};

const MISSING: Call = ["none", {}];

export async function installed(): Promise<RealServer[]> {
  const folder = await mkdtemp(join(tmpdir(), "real-servers-"));
  const at = (...path: string[]) => join(folder, ...path);
  console.log(`installing ${[...NPM, ...Object.values(PYPI).flat()].join(", ")} in ${folder}`);
  await execa("npm", ["install", "--prefix", folder, "--no-audit", "--no-fund", "--silent", ...NPM]);
  for (const [name, packages] of Object.entries(PYPI)) {
    await execa("python3", ["-m", "venv", at(name)]);
    await execa(at(name, "bin/pip"), ["install", "--quiet", ...packages]);
  }
  const browser = at("browser.json");
  await writeFile(browser, JSON.stringify({ browser: { launchOptions: await browserOptions() } }));

  await execa("git", ["init", "--quiet", at("repository")]);
  await writeFile(at("repository/a.txt"), "a\n");
  const git = (...args: string[]) =>
    execa("git", ["-C", at("repository"), "-c", "user.name=A", "-c", "user.email=a@example.com", ...args]);
  await git("add", "a.txt");
  await git("commit", "--quiet", "-m", "A file");
  await writeFile(at("repository/a.txt"), "b\n");
  await mkdir(at("files/fixed"), { recursive: true });
  await writeFile(at("files/fixed/c.txt"), "c\n");
  await writeFile(at("files/a.txt"), "one\ntwo\n");

  const pages = await serveHttp((request, response) => {
    if (request.url === "/page") response.setHeader("content-type", "text/html").end("<h1>Title</h1><p>Words.</p>");
    else response.writeHead(404).end();
  });

  const node = (name: string, ...args: string[]) => ({
    command: process.execPath,
    args: [at(`node_modules/@modelcontextprotocol/server-${name}/dist/index.js`), ...args],
  });
  const none = { env: () => ({}), prompts: [] };
  const repo_path = at("repository");
  const entity = { name: "Ada", entityType: "person", observations: ["counts"] };
  const servers: RealServer[] = [
    {
      ...none,
      name: "everything",
      ...node("everything"),
      calls: [
        ["echo", { message: "hello" }],
        ["echo", {}],
        ["get-sum", { a: 1, b: 2 }],
        ["get-annotated-message", { messageType: "error", includeImage: true }],
        ["get-tiny-image"],
        ["get-structured-content", { location: "Chicago" }],
        ["get-resource-links", { count: 2 }],
        ["get-resource-reference", { resourceType: "Text", resourceId: 1 }],
        MISSING,
      ],
      progress: ["trigger-long-running-operation", { duration: 3, steps: 3 }],
      cancel: ["trigger-long-running-operation", { duration: 30, steps: 30 }],
      prompts: [["simple-prompt"], ["args-prompt", { city: "Oslo", state: "Oslo" }], ["args-prompt"], ["none"]],
    },
    {
      ...none,
      name: "filesystem",
      ...node("filesystem", at("files")),
      calls: [
        ["list_allowed_directories"],
        ["read_text_file", { path: at("files/a.txt") }],
        ["read_text_file", { path: at("files/none.txt") }],
        ["read_text_file", { path: "/etc/hostname" }],
        ["read_text_file", {}],
        ["list_directory", { path: at("files/fixed") }],
        ["get_file_info", { path: at("files/a.txt") }],
        ["write_file", { path: at("files/b.txt"), content: "b" }],
        ["search_files", { path: at("files/fixed"), pattern: "*.txt" }],
        MISSING,
      ],
    },
    {
      ...none,
      name: "memory",
      ...node("memory"),
      env: (which) => ({ MEMORY_FILE_PATH: at(`memory-${which}.jsonl`) }),
      calls: [
        ["create_entities", { entities: [entity] }],
        ["add_observations", { observations: [{ entityName: "Ada", contents: ["writes"] }] }],
        ["add_observations", { observations: [{ entityName: "Bob", contents: ["is not there"] }] }],
        ["search_nodes", { query: "Ada" }],
        ["read_graph"],
        ["create_entities", { entities: "none" }],
      ],
    },
    {
      ...none,
      name: "thinking",
      ...node("sequential-thinking"),
      calls: [
        ["sequentialthinking", { thought: "One.", nextThoughtNeeded: false, thoughtNumber: 1, totalThoughts: 1 }],
        ["sequentialthinking", { thought: "One." }],
      ],
    },
    {
      ...none,
      name: "git",
      command: at("venv/bin/mcp-server-git"),
      args: ["--repository", repo_path],
      env: () => ({ PATH: process.env.PATH ?? "" }),
      calls: [
        ["git_status", { repo_path }],
        ["git_diff_unstaged", { repo_path }],
        ["git_log", { repo_path, max_count: 5 }],
        ["git_show", { repo_path, revision: "HEAD" }],
        ["git_show", { repo_path, revision: "none" }],
        ["git_status", {}],
        MISSING,
      ],
    },
    {
      ...none,
      name: "time",
      command: at("venv/bin/mcp-server-time"),
      args: ["--local-timezone", "UTC"],
      calls: [
        ["convert_time", { source_timezone: "UTC", time: "12:00", target_timezone: "Asia/Tokyo" }],
        ["convert_time", { source_timezone: "UTC", time: "noon", target_timezone: "Asia/Tokyo" }],
        ["get_current_time", { timezone: "Nowhere/None" }],
      ],
    },
    {
      ...none,
      name: "fetch",
      command: at("venv/bin/mcp-server-fetch"),
      args: ["--ignore-robots-txt"],
      calls: [
        ["fetch", { url: `${pages.url}/page` }],
        ["fetch", { url: `${pages.url}/none` }],
        ["fetch", { url: "no address" }],
        ["fetch", {}],
      ],
      prompts: [["fetch", { url: `${pages.url}/page` }], ["fetch"]],
    },
    {
      ...none,
      name: "sqlite",
      command: at("venv-sqlite/bin/mcp-server-sqlite"),
      args: ["--db-path", at("sqlite.db")],
      calls: [
        ["create_table", { query: "CREATE TABLE IF NOT EXISTS t (a INTEGER)" }],
        ["list_tables"],
        ["describe_table", { table_name: "t" }],
        ["read_query", { query: "SELECT 1 AS one" }],
        ["read_query", { query: "SELECT * FROM none" }],
        ["read_query", {}],
        ["append_insight", { insight: "It is one." }],
        MISSING,
      ],
      prompts: [["mcp-demo", { topic: "trade" }]],
    },
    {
      ...none,
      name: "playwright",
      command: process.execPath,
      args: [at("node_modules/@playwright/mcp/cli.js"), "--headless", "--isolated", "--config", browser],
      env: (which) => ({ HOME: at(`home-${which}`) }),
      calls: [
        ["browser_navigate", { url: `${pages.url}/page` }],
        ["browser_snapshot"],
        ["browser_evaluate", { function: "() => document.title + 1" }],
        ["browser_take_screenshot", { filename: "page.png" }],
        ["browser_click", { element: "nothing", ref: "none", target: "none" }],
        ["browser_navigate", {}],
        ["browser_close"],
        MISSING,
      ],
      [Symbol.asyncDispose]: () => pages[Symbol.asyncDispose](),
    },
    {
      ...none,
      name: "fastmcp",
      command: at("venv-fastmcp/bin/python"),
      args: [join(import.meta.dirname, "server.py")],
      env: (which) => ({ CALLS: at(`calls-${which}`) }),
      calls: [
        ["yearly_report", { year: 2026 }],
        ["yearly_report", { year: "none" }],
        ["numbers", { count: 3 }],
        ["picture"],
        ["refuses"],
        MISSING,
      ],
    },
  ];
  const [everything, fastmcp] = [servers[0], servers.at(-1)];
  if (!everything || !fastmcp) return servers;
  const { cancel: _, ...rest } = everything;
  return [
    ...servers,
    // Cancellation is only checked over stdio, where the messages to the server are recorded.
    { ...rest, name: "everything-http", args: [...everything.args, "streamableHttp"], overHttp: true },
    { ...fastmcp, name: "fastmcp-http", overHttp: true },
  ];
}

/** The options for the browser of this checkout's tests. */
async function browserOptions(): Promise<object> {
  const { default: chromium } = await import("@sparticuz/chromium");
  const args = chromium.args.filter((arg) => !/single-process|no-zygote/.test(arg));
  return { executablePath: await chromium.executablePath(), args, chromiumSandbox: false };
}
