/** FastMCP servers from PyPI. Every tool must give the same answer with and without the wrap, and tasks must outlive the worker. */
import { mkdtemp, readFile, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { execa } from "execa";
import { tasksAt } from "../../test/tasks/support.ts";
import { connect, wrappedStack } from "../../test/wrap/support.ts";
import { freePort } from "../../testing/stack/port.ts";
import { until } from "../../testing/stack/program.ts";

const SERVER = join(import.meta.dirname, "server.py");
/** The longest wait, in milliseconds. */
const PATIENCE = 300_000;
const CALLS: readonly [name: string, args: Record<string, unknown>][] = [
  ["yearly_report", { year: 2026 }],
  ["yearly_report", { year: "none" }],
  ["numbers", { count: 3 }],
  ["picture", {}],
  ["refuses", {}],
];

export async function python(): Promise<string[]> {
  const folder = await mkdtemp(join(tmpdir(), "fastmcp-"));
  const bin = join(folder, "venv/bin");
  console.log("installing fastmcp and fastmcp-tasks");
  await execa("python3", ["-m", "venv", join(folder, "venv")]);
  await execa(join(bin, "pip"), ["install", "--quiet", "fastmcp", "fastmcp-tasks"]);
  const program = join(bin, "python");
  return [...(await stdio(program, folder)), ...(await http(program, folder))];
}

const linesOf = async (file: string) => (await readFile(file, "utf8").catch(() => "")).split("\n").filter(Boolean);

/** A program without tasks. */
async function stdio(program: string, folder: string): Promise<string[]> {
  const CALLS_FILE = join(folder, "calls-stdio");
  await using stack = await wrappedStack({
    name: "reports",
    command: program,
    args: [SERVER],
    env: { CALLS: CALLS_FILE },
  });
  const direct = new Client({ name: "test", version: "1.0.0" });
  const env = { CALLS: join(folder, "calls-direct"), PATH: process.env.PATH ?? "" };
  await direct.connect(new StdioClientTransport({ command: program, args: [SERVER], env, stderr: "ignore" }));
  const problems = await compared(direct, stack.url, "stdio");
  await direct.close();
  const tasks = tasksAt(stack.url);
  const gate = join(folder, "gate-stdio");
  const { taskId } = await tasks.call("yearly_report", { year: 1, gate });
  await until("the call", async () => (await linesOf(CALLS_FILE)).includes("yearly_report 1"), PATIENCE);
  await stack.workers[0]?.kill();
  await stack.workers[0]?.start();
  // The call goes on in the program, which outlives the worker.
  await writeFile(gate, "");
  const { result } = await tasks.reaches(taskId, "completed", PATIENCE);
  if (!/The report of 1/.test(JSON.stringify(result))) problems.push(`stdio: ${JSON.stringify(result)}`);
  const times = (await linesOf(CALLS_FILE)).filter((line) => line === "yearly_report 1").length;
  if (times !== 1) problems.push(`stdio: the call was made ${times} times`);
  return problems;
}

/** A server with tasks of the 2026-07-28 revision. */
async function http(program: string, folder: string): Promise<string[]> {
  const file = join(folder, "calls-http");
  const port = await freePort();
  const url = `http://127.0.0.1:${port}/mcp`;
  const server = execa(program, [SERVER], {
    env: { PORT: `${port}`, TASKS: "1", CALLS: file },
    stdio: "ignore",
    reject: false,
  });
  try {
    await until(
      "the server",
      () =>
        fetch(url).then(
          () => true,
          () => false,
        ),
      PATIENCE,
    );
    await using stack = await wrappedStack({ name: "reports", url, allowPrivate: true });
    const direct = new Client({ name: "test", version: "1.0.0" }, { versionNegotiation: { mode: "auto" } });
    await direct.connect(new StreamableHTTPClientTransport(new URL(url)));
    const problems = await compared(direct, stack.url, "http");
    await direct.close();
    const tasks = tasksAt(stack.url);
    const gate = join(folder, "gate-http");
    const { taskId } = await tasks.call("crunch", { name: "data", gate });
    await until("the call", async () => (await linesOf(file)).includes("crunch data"), PATIENCE);
    // Once the worker looks at the task, it has stored the task's id.
    const looks = async () => (await linesOf(file)).filter((line) => line === "looked").length;
    await until("a look at the task", async () => (await looks()) > 0, PATIENCE);
    await stack.workers[0]?.kill();
    const before = await looks();
    await stack.workers[0]?.start();
    await until("another worker's look at the task", async () => (await looks()) > before, PATIENCE);
    await writeFile(gate, "");
    const { result } = await tasks.reaches(taskId, "completed", PATIENCE);
    if (!JSON.stringify(result).includes("data is crunched")) problems.push(`http: ${JSON.stringify(result)}`);
    const times = (await linesOf(file)).filter((line) => line === "crunch data").length;
    if (times !== 1) problems.push(`http: the task was begun ${times} times`);
    return problems;
  } finally {
    server.kill("SIGKILL");
    await server;
  }
}

async function compared(direct: Client, url: string, how: string): Promise<string[]> {
  const through = await connect(url);
  const problems: string[] = [];
  for (const [name, args] of CALLS) {
    const plain = ({ _meta, ...rest }: Record<string, unknown>) => rest;
    const there = plain(await direct.callTool({ name, arguments: args }));
    const here = plain(await through.callTool({ name, arguments: args }));
    if (!isDeepStrictEqual(here, there)) {
      problems.push(`${how}: ${name} answers ${JSON.stringify(here)}, without the wrap ${JSON.stringify(there)}`);
    }
  }
  console.log(`${how}: ${CALLS.length} calls compared, ${problems.length} differ`);
  await through.close();
  return problems;
}
