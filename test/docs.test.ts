/** The examples in the documents equal the files that they name, and these files run. */
import { existsSync } from "node:fs";
import { readdir, readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { type HttpServer, serveHttp } from "../testing/stack/http-server.ts";
import { CLIENTS, type McpClient } from "./support/clients.ts";
import { type Stack, startStack } from "./support/stack.ts";
import { accept, tasksAt } from "./tasks/support.ts";

const ROOT = join(import.meta.dirname, "..");
const EXAMPLES = join(ROOT, "docs/examples");
/** The template of `new`: the project of the tutorial, which test/package makes, runs and tests. */
const PROJECT = join(ROOT, "cli/template/project");

/** The import specifiers that the documents show, by the paths that the files in this repository import. */
const PUBLIC: Record<string, string> = {
  "../../core/index.ts": "durable-mcp-edge",
  "../../functions/edge.ts": "durable-mcp-edge/edge",
  "../../client/index.ts": "durable-mcp-edge/client",
  "../../worker/index.ts": "durable-mcp-edge/worker",
  "../../testing/index.ts": "durable-mcp-edge/testing",
  "../../wrap/index.ts": "durable-mcp-edge/wrap",
  "../../wrap/worker/index.ts": "durable-mcp-edge/wrap/worker",
};

const documents = [
  "README.md",
  "SECURITY.md",
  "CHANGELOG.md",
  "CONTRIBUTING.md",
  "lab/measurements.md",
  ...(await readdir(join(ROOT, "docs"))).filter((file) => file.endsWith(".md")).map((file) => `docs/${file}`),
];

/** The code blocks of a document whose first line names the file that they are from. */
async function blocksIn(document: string): Promise<[file: string, code: string][]> {
  const text = await readFile(join(ROOT, document), "utf8");
  return [...text.matchAll(/```ts\n\/\/ (\S+\.ts)\n([\s\S]*?)```/g)].map(([, file = "", code = ""]) => [file, code]);
}

const blocks = (await Promise.all(documents.map(blocksIn))).flat();

/** A document without its code blocks. */
const prose = async (document: string) => (await readFile(join(ROOT, document), "utf8")).replace(/```[\s\S]*?```/g, "");

/** The anchors of a document's headings. */
async function anchors(document: string): Promise<string[]> {
  const headings = [...(await prose(document)).matchAll(/^#+ (.*)$/gm)].map(([, heading = ""]) => heading);
  return headings.map((heading) =>
    heading
      .toLowerCase()
      .replace(/[^\p{L}\p{N} _-]/gu, "")
      .replaceAll(" ", "-"),
  );
}

test("every claim of SECURITY.md names existing code and tests", async () => {
  const [, section = ""] = (await readFile(join(ROOT, "SECURITY.md"), "utf8")).split("\n## Claims\n");
  const rows = (section.split("\n## ")[0] ?? "").split("\n").filter((line) => /^\| (?!claim )[^-]/.test(line));
  expect(rows.length).toBeGreaterThan(20);
  const pathsIn = (cell = "") => [...cell.matchAll(/`([^`]+)`/g)].map(([, path = ""]) => path);
  for (const row of rows) {
    const [claim = "", code, tests] = row.slice(1, -1).split(" | ");
    const named = pathsIn(tests);
    expect([claim, named.length > 0 && named.every((path) => path.endsWith(".test.ts"))]).toEqual([claim, true]);
    for (const path of [...pathsIn(code), ...named]) expect([path, existsSync(join(ROOT, path))]).toEqual([path, true]);
  }
});

test("every test that a document names exists", async () => {
  let named = 0;
  for (const document of documents) {
    for (const [, path = ""] of (await prose(document)).matchAll(/`([\w/.-]+\.test\.ts)`/g)) {
      // The tutorial names a test of the project that it makes.
      if (document === "docs/tutorial.md") continue;
      named += 1;
      expect(existsSync(join(ROOT, path)), `${document}: ${path}`).toBe(true);
    }
  }
  expect(named).toBeGreaterThan(50);
});

test("every link between documents leads to an existing file and heading", async () => {
  let followed = 0;
  for (const document of documents) {
    for (const [, link = ""] of (await prose(document)).matchAll(/\]\(([^)\s]+)\)/g)) {
      if (/^[a-z]+:/.test(link)) continue;
      followed += 1;
      const [path, anchor] = link.split("#");
      const file = path ? join(dirname(document), path) : document;
      expect(existsSync(join(ROOT, file)), `${document} → ${link}`).toBe(true);
      if (anchor !== undefined) expect(await anchors(file), `${document} → ${link}`).toContain(anchor);
    }
  }
  expect(followed).toBeGreaterThan(50);
});

test("every TypeScript block in the documents names its file, and every example file is shown or linked", async () => {
  expect(blocks.length).toBeGreaterThan(6);
  // The last two files only list the others, to run them. A document may link to a file instead of showing it. The table in
  // docs/authoring.md names folders, one for each tool.
  const shown = new Set([...blocks.map(([file]) => file), "services.ts", "edge.ts", "worker.ts"]);
  for (const document of documents)
    for (const [, file = ""] of (await prose(document)).matchAll(/\]\((?:docs\/)?examples\/(\S+\.ts)\)/g))
      shown.add(file);
  const tabled = [...(await prose("docs/authoring.md")).matchAll(/^\| `(\w+)` \|/gm)].map(([, folder = ""]) => folder);
  expect(tabled.length).toBeGreaterThanOrEqual(9);
  for (const folder of tabled) for (const end of [".ts", ".run.ts"]) shown.add(`${folder}/${folder}${end}`);
  const files = (await readdir(EXAMPLES, { recursive: true })).filter((file) => file.endsWith(".ts"));
  expect(files.filter((file) => !shown.has(file))).toEqual([]);
  expect(tabled.filter((folder) => !files.includes(`${folder}/${folder}.run.ts`))).toEqual([]);
  const unnamed = (await Promise.all(documents.map((document) => readFile(join(ROOT, document), "utf8")))).flatMap(
    (text) => [...text.matchAll(/```(?:ts|typescript|js)\n(?!\/\/ \S+\.ts\n)(.*)/g)].map(([, line]) => line),
  );
  expect(unnamed).toEqual([]);
});

test.each(blocks)("the block of %s equals the file", async (file, code) => {
  const source = await readFile(join(file.startsWith("tools/") ? PROJECT : EXAMPLES, file), "utf8");
  expect(code).toBe(
    source.replace(/"(?:\.\.\/)+([a-z/]+\.ts)"/g, (text, path) => {
      const name = PUBLIC[`../../${path}`];
      return name ? `"${name}"` : text;
    }),
  );
});

describe("the examples run:", () => {
  let stack: Stack;
  let client: McpClient;
  let billing: HttpServer;
  const paths: string[] = [];
  let site = "";

  beforeAll(async () => {
    billing = await serveHttp((request, response) => {
      paths.push(`${request.method} ${request.url}`);
      response.setHeader("content-type", request.url === "/page" ? "text/html" : "application/json");
      response.end(request.url === "/page" ? "<title>A page</title>" : JSON.stringify({ paid: true }));
    });
    site = billing.url;
    stack = await startStack({
      programs: { edge: "docs/examples/edge.ts", worker: "docs/examples/worker.ts" },
      env: { SERVICES_URL: site },
    });
    const [current] = CLIENTS;
    if (!current) throw new Error("there is no client");
    client = await current.connect(stack.url);
  });
  afterAll(async () => {
    await client?.close();
    await stack?.[Symbol.asyncDispose]();
    await billing?.[Symbol.asyncDispose]();
  });

  test("pages are fetched, each once", async () => {
    const { content } = await client.callTool("page_titles", { urls: [`${site}/page`, `${site}/page?2`] });
    expect(content.result).toEqual({ titles: ["A page", `${site}/page?2`] });
  });

  test("an invoice is sent once, and its payment is noticed", async () => {
    const { content } = await client.callTool("send_invoice", { number: 7 });
    expect(content.result).toEqual({ paid: true });
    expect(paths.filter((path) => path.startsWith("POST"))).toEqual(["POST /invoices/7/send"]);
  });

  test("a release asks for approval, and is made after it", async () => {
    const tasks = tasksAt(stack.url);
    const { taskId } = await tasks.call("release", { version: "1.2" });
    const { inputRequests } = await tasks.reaches(taskId, "input_required");
    expect(inputRequests.approve.params.message).toBe("Release 1.2?");
    await tasks.update(taskId, { approve: accept({ approved: true }) });
    const { result } = (await tasks.reaches(taskId, "completed")).result.structuredContent;
    expect(result).toMatchObject({ version: "1.2", released_at: expect.any(String) });
  });

  test("a program starts a release, answers its question, and gets its result", async () => {
    vi.stubEnv("MCP_URL", stack.url);
    const { released_at } = await import("../docs/examples/client.ts").finally(() => vi.unstubAllEnvs());
    expect(Date.parse(released_at)).toBeGreaterThan(0);
  });
});

test("features/README.md has a row for each feature, and no other", async () => {
  const text = await readFile(join(ROOT, "features/README.md"), "utf8");
  const [, rows = ""] = text.split("| feature | what it adds |");
  const named = [...rows.matchAll(/^\| `([^`]+)` \|/gm)].map(([, name]) => name);
  const folders = await readdir(join(ROOT, "features"), { withFileTypes: true });
  expect(named).toEqual(folders.flatMap((entry) => (entry.isDirectory() ? [entry.name] : [])).sort());
});
