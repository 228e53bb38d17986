/** The workers with Resonate's SDKs from docs/resonate.md; the Python one if Python 3.12 and the package are available. */
import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { execa } from "execa";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { until } from "../../testing/stack/program.ts";
import { CLIENTS, type McpClient } from "../support/clients.ts";
import { programOf } from "../support/programs.ts";
import { type Resonate, startResonate } from "../support/resonate.ts";
import { type Stack, startStack } from "../support/stack.ts";

const EXAMPLES = join(import.meta.dirname, "../../docs/examples/sdk");
const PACKAGE = "resonate-sdk==0.8.*";

/** The virtual environment, which is outside the checkout and kept for the next run. */
const venv = join(tmpdir(), "durable-mcp-edge-python");
const python = join(venv, "bin/python");

function candidates(): string[] {
  const pyenv = join(process.env.HOME ?? "", ".pyenv/versions");
  const named = ["python3.14", "python3.13", "python3.12", "python3"];
  return [...named, ...["3.13.0", "3.12.1"].map((version) => join(pyenv, version, "bin/python3"))];
}

/** Prepares a Python with the package. False if there is no suitable Python, or the package cannot be installed. */
function prepare(): boolean {
  const has = () => {
    try {
      execFileSync(python, ["-c", "import resonate"], { stdio: "ignore" });
      return true;
    } catch {
      return false;
    }
  };
  if (existsSync(python) && has()) return true;
  for (const one of candidates()) {
    try {
      execFileSync(one, ["-c", "import sys; sys.exit(sys.version_info < (3, 12))"], { stdio: "ignore" });
      execFileSync(one, ["-m", "venv", "--clear", venv], { stdio: "ignore" });
      execFileSync(python, ["-m", "pip", "install", "--quiet", PACKAGE], { stdio: "ignore", timeout: 60_000 });
      return has();
    } catch {
      // Try the next candidate.
    }
  }
  return false;
}

const isThere = prepare();

/** The workers of the document, with the program that runs each. */
const WORKERS = {
  "generators.ts": process.execPath,
  "async.ts": process.execPath,
  "worker.py": isThere ? python : undefined,
};

describe("a job of a group whose worker is written with one of Resonate's SDKs", () => {
  let resonate: Resonate;
  let stack: Stack;
  let client: McpClient;
  const run = (program: string, file: string) => {
    const env = { ...resonate.env, RESONATE_NAMESPACE: stack.namespace, RESONATE_GROUP: stack.group };
    return execa(program, [join(EXAMPLES, file)], { env, reject: false, all: true });
  };
  const programs: ReturnType<typeof run>[] = [];
  const start = (program: string, file: string) => {
    const started = run(program, file);
    programs.push(started);
    return started;
  };
  const count = async (text: string) => (await client.callTool("count_words", { text })).content;
  /** Waits until a job of the stack sleeps, so that no worker executes it. */
  const sleeps = () =>
    until("the job to sleep", async () => {
      const { data } = await resonate.call("task.search", { state: "suspended" });
      return (typeof data === "object" && data.tasks.some(({ id }) => id.startsWith(stack.namespace))) || undefined;
    });
  beforeAll(async () => {
    resonate = await startResonate();
    stack = await startStack({ resonate, programs: { edge: "test/sdks/words-edge.ts", worker: programOf("worker") } });
    client = await (CLIENTS[0] as (typeof CLIENTS)[number]).connect(stack.url);
  });
  afterAll(async () => {
    await client?.close();
    for (const program of programs) program.kill("SIGKILL");
    await Promise.all(programs);
    await stack?.[Symbol.asyncDispose]();
    await resonate?.[Symbol.asyncDispose]();
  });

  describe.each(Object.entries(WORKERS))("%s", (file, program) => {
    test.skipIf(!program)("results, errors, progress, cancellation and kill -9", async () => {
      let worker = start(program as string, file);
      expect(await count(`to be or not to be (${file})`)).toMatchObject({ status: "complete", result: { words: 7 } });

      const tooLong = await count(`${file} ${"long ".repeat(300)}`);
      expect(tooLong).toMatchObject({ status: "failed", error: expect.stringContaining("the text is too long") });

      const started = client.callTool("count_words", { text: `all is well (${file})` });
      await sleeps();
      const { jobs } = (await client.callTool("list_jobs", { status: "running", kind: "count_words" })).content;
      const { statuses } = (await client.callTool("probe_status", { job_names: [jobs[0].job_name] })).content;
      expect(statuses).toMatchObject([{ status: "running", doing: expect.stringContaining("counting") }]);
      worker.kill("SIGKILL");
      await worker;
      worker = start(program as string, file);
      expect((await started).content).toMatchObject({ status: "complete", result: { words: 4 } });

      const cancelled = client.callTool("count_words", { text: `never mind (${file})` });
      await sleeps();
      const running = (await client.callTool("list_jobs", { status: "running", kind: "count_words" })).content;
      await client.callTool("cancel_job", { job_names: [running.jobs[0].job_name] });
      expect((await cancelled).content).toMatchObject({ status: "cancelled" });
      expect(await count(`and it goes on (${file})`)).toMatchObject({ status: "complete" });
      worker.kill("SIGKILL");
      await worker;
    });
  });

  test("a result that does not fit the tool's output fails the job with an error that says so", async () => {
    const worker = start(process.execPath, "async.ts");
    const content = await count("");
    expect(content).toMatchObject({ status: "failed" });
    expect(content.error).toContain("does not fit the tool's output at words");
    expect(content).not.toHaveProperty("result");
    worker.kill("SIGKILL");
    await worker;
  });

  test.skipIf(!isThere)("a Python client starts a job of this project's worker", async () => {
    expect(await start(python, "client.py")).toMatchObject({ all: "complete", exitCode: 0 });
    const timer = await resonate.get(`${stack.namespace}timer_from python`);
    expect(timer).toMatchObject({ state: "resolved", value: { data: "complete" } });
    const { statuses } = (await client.callTool("probe_status", { job_names: "timer_from python" })).content;
    expect(statuses).toMatchObject([{ status: "complete" }]);
  });

  test.skipIf(!isThere)(
    "a job that another program has started is listed if it has the tags of jobs that the edge starts",
    async () => {
      const id = `${stack.namespace}timer_from elsewhere`;
      const fires_at = new Date(Date.now() + 3_600_000).toISOString();
      const call = { func: "timer", args: [{ timer_name: "from elsewhere", fires_at }], version: 1 };
      const lineage = {
        "resonate:origin": id,
        "resonate:branch": id,
        "resonate:parent": id,
        "resonate:scope": "global",
      };
      const tags = {
        ...lineage,
        "resonate:target": `poll://any@${stack.group}`,
        "durable-mcp:caller": `${stack.namespace}anyone`,
        "durable-mcp:kind": "timer",
      };
      const param = { data: Buffer.from(JSON.stringify(call)).toString("base64") };
      await resonate.call("promise.create", { id, timeoutAt: Date.now() + 7_200_000, param, tags });
      const { jobs } = (await client.callTool("list_jobs", { status: "running", kind: "timer" })).content;
      expect(jobs).toMatchObject([{ job_name: "timer_from elsewhere", kind: "timer" }]);
    },
  );
});
