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

/** The file of the Playwright server's configuration. */
const BROWSER_CONFIGURATION = "browser.json";

const MISSING: Call = ["none", {}];

/** What servers have unless they say otherwise. */
const DEFAULTS = { env: () => ({}), prompts: [] };

/** Installs the servers in a temporary folder, with the files that their calls are about. */
export async function installServers(): Promise<RealServer[]> {
  const folder = await mkdtemp(join(tmpdir(), "real-servers-"));
  await installPackages(folder);
  await writeBrowserConfiguration(folder);
  await makeRepository(folder);
  await writeSampleFiles(folder);
  const pages = await servePages();
  const everything = everythingServer(folder);
  const { cancel: _, ...withoutCancel } = everything;
  const fastmcp = fastmcpServer(folder);
  return [
    everything,
    filesystemServer(folder),
    memoryServer(folder),
    thinkingServer(folder),
    gitServer(folder),
    timeServer(folder),
    fetchServer(folder, pages.url),
    sqliteServer(folder),
    { ...playwrightServer(folder, pages.url), [Symbol.asyncDispose]: () => pages[Symbol.asyncDispose]() },
    fastmcp,
    // Cancellation is only checked over stdio, where the messages to the server are recorded.
    { ...withoutCancel, name: "everything-http", args: [...everything.args, "streamableHttp"], overHttp: true },
    { ...fastmcp, name: "fastmcp-http", overHttp: true },
  ];
}

async function installPackages(folder: string): Promise<void> {
  console.log(`installing ${[...NPM, ...Object.values(PYPI).flat()].join(", ")} in ${folder}`);
  await execa("npm", ["install", "--prefix", folder, "--no-audit", "--no-fund", "--silent", ...NPM]);
  for (const [name, packages] of Object.entries(PYPI)) {
    await execa("python3", ["-m", "venv", join(folder, name)]);
    await execa(join(folder, name, "bin/pip"), ["install", "--quiet", ...packages]);
  }
}

/** Configures the Playwright server for the browser of this checkout's tests. */
async function writeBrowserConfiguration(folder: string): Promise<void> {
  const configuration = { browser: { launchOptions: await browserOptions() } };
  await writeFile(join(folder, BROWSER_CONFIGURATION), JSON.stringify(configuration));
}

/** The options for the browser of this checkout's tests. */
async function browserOptions(): Promise<object> {
  const { default: chromium } = await import("@sparticuz/chromium");
  const args = chromium.args.filter((arg) => !/single-process|no-zygote/.test(arg));
  return { executablePath: await chromium.executablePath(), args, chromiumSandbox: false };
}

async function makeRepository(folder: string): Promise<void> {
  const repository = join(folder, "repository");
  const file = join(repository, "a.txt");
  await execa("git", ["init", "--quiet", repository]);
  await writeFile(file, "a\n");
  const git = (...args: string[]) =>
    execa("git", ["-C", repository, "-c", "user.name=A", "-c", "user.email=a@example.com", ...args]);
  await git("add", "a.txt");
  await git("commit", "--quiet", "-m", "A file");
  await writeFile(file, "b\n");
}

async function writeSampleFiles(folder: string): Promise<void> {
  const files = join(folder, "files");
  await mkdir(join(files, "fixed"), { recursive: true });
  await writeFile(join(files, "fixed/c.txt"), "c\n");
  await writeFile(join(files, "a.txt"), "one\ntwo\n");
}

/** Serves the page that servers fetch. */
const servePages = () =>
  serveHttp((request, response) => {
    if (request.url === "/page") response.setHeader("content-type", "text/html").end("<h1>Title</h1><p>Words.</p>");
    else response.writeHead(404).end();
  });

/** The command of one of the protocol's reference servers. */
const referenceServer = (folder: string, name: string, ...args: string[]) => ({
  command: process.execPath,
  args: [join(folder, `node_modules/@modelcontextprotocol/server-${name}/dist/index.js`), ...args],
});

function everythingServer(folder: string): RealServer {
  return {
    ...DEFAULTS,
    name: "everything",
    ...referenceServer(folder, "everything"),
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
  };
}

function filesystemServer(folder: string): RealServer {
  return {
    ...DEFAULTS,
    name: "filesystem",
    ...referenceServer(folder, "filesystem", join(folder, "files")),
    calls: [
      ["list_allowed_directories"],
      ["read_text_file", { path: join(folder, "files/a.txt") }],
      ["read_text_file", { path: join(folder, "files/none.txt") }],
      ["read_text_file", { path: "/etc/hostname" }],
      ["read_text_file", {}],
      ["list_directory", { path: join(folder, "files/fixed") }],
      ["get_file_info", { path: join(folder, "files/a.txt") }],
      ["write_file", { path: join(folder, "files/b.txt"), content: "b" }],
      ["search_files", { path: join(folder, "files/fixed"), pattern: "*.txt" }],
      MISSING,
    ],
  };
}

function memoryServer(folder: string): RealServer {
  const entity = { name: "Ada", entityType: "person", observations: ["counts"] };
  return {
    ...DEFAULTS,
    name: "memory",
    ...referenceServer(folder, "memory"),
    env: (which) => ({ MEMORY_FILE_PATH: join(folder, `memory-${which}.jsonl`) }),
    calls: [
      ["create_entities", { entities: [entity] }],
      ["add_observations", { observations: [{ entityName: "Ada", contents: ["writes"] }] }],
      ["add_observations", { observations: [{ entityName: "Bob", contents: ["is not there"] }] }],
      ["search_nodes", { query: "Ada" }],
      ["read_graph"],
      ["create_entities", { entities: "none" }],
    ],
  };
}

function thinkingServer(folder: string): RealServer {
  return {
    ...DEFAULTS,
    name: "thinking",
    ...referenceServer(folder, "sequential-thinking"),
    calls: [
      ["sequentialthinking", { thought: "One.", nextThoughtNeeded: false, thoughtNumber: 1, totalThoughts: 1 }],
      ["sequentialthinking", { thought: "One." }],
    ],
  };
}

function gitServer(folder: string): RealServer {
  const repo_path = join(folder, "repository");
  return {
    ...DEFAULTS,
    name: "git",
    command: join(folder, "venv/bin/mcp-server-git"),
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
  };
}

function timeServer(folder: string): RealServer {
  return {
    ...DEFAULTS,
    name: "time",
    command: join(folder, "venv/bin/mcp-server-time"),
    args: ["--local-timezone", "UTC"],
    calls: [
      ["convert_time", { source_timezone: "UTC", time: "12:00", target_timezone: "Asia/Tokyo" }],
      ["convert_time", { source_timezone: "UTC", time: "noon", target_timezone: "Asia/Tokyo" }],
      ["get_current_time", { timezone: "Nowhere/None" }],
    ],
  };
}

function fetchServer(folder: string, origin: string): RealServer {
  return {
    ...DEFAULTS,
    name: "fetch",
    command: join(folder, "venv/bin/mcp-server-fetch"),
    args: ["--ignore-robots-txt"],
    calls: [
      ["fetch", { url: `${origin}/page` }],
      ["fetch", { url: `${origin}/none` }],
      ["fetch", { url: "no address" }],
      ["fetch", {}],
    ],
    prompts: [["fetch", { url: `${origin}/page` }], ["fetch"]],
  };
}

function sqliteServer(folder: string): RealServer {
  return {
    ...DEFAULTS,
    name: "sqlite",
    command: join(folder, "venv-sqlite/bin/mcp-server-sqlite"),
    args: ["--db-path", join(folder, "sqlite.db")],
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
  };
}

function playwrightServer(folder: string, origin: string): RealServer {
  return {
    ...DEFAULTS,
    name: "playwright",
    command: process.execPath,
    args: [
      join(folder, "node_modules/@playwright/mcp/cli.js"),
      "--headless",
      "--isolated",
      "--config",
      join(folder, BROWSER_CONFIGURATION),
    ],
    env: (which) => ({ HOME: join(folder, `home-${which}`) }),
    calls: [
      ["browser_navigate", { url: `${origin}/page` }],
      ["browser_snapshot"],
      ["browser_evaluate", { function: "() => document.title + 1" }],
      ["browser_take_screenshot", { filename: "page.png" }],
      ["browser_click", { element: "nothing", ref: "none", target: "none" }],
      ["browser_navigate", {}],
      ["browser_close"],
      MISSING,
    ],
  };
}

function fastmcpServer(folder: string): RealServer {
  return {
    ...DEFAULTS,
    name: "fastmcp",
    command: join(folder, "venv-fastmcp/bin/python"),
    args: [join(import.meta.dirname, "server.py")],
    env: (which) => ({ CALLS: join(folder, `calls-${which}`) }),
    calls: [
      ["yearly_report", { year: 2026 }],
      ["yearly_report", { year: "none" }],
      ["numbers", { count: 3 }],
      ["picture"],
      ["refuses"],
      MISSING,
    ],
  };
}
