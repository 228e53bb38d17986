/**
 * `npm run files`: a file of 1 GB (`--size BYTES`) goes through worker, folder and edge. Measures the memory of both above rest,
 * and the throughput compared with a bare copy of the same bytes.
 */
import { randomBytes } from "node:crypto";
import { createReadStream, createWriteStream } from "node:fs";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { parseArgs } from "node:util";
import { hashOf, madeOf } from "../../test/files/fixture/runs.ts";
import { rpc } from "../../test/support/rpc.ts";
import { startStack } from "../../test/support/stack.ts";

const { values } = parseArgs({
  options: { size: { type: "string", default: "1000000000" }, sealed: { type: "boolean" } },
});
const size = Number(values.size);
const PUBLIC_URL = "https://jobs.example";
const programs = { edge: "test/files/fixture/files-edge.ts", worker: "test/files/fixture/files-worker.ts" };

async function resident(pid: number): Promise<number> {
  // The process may have ended.
  const status = await readFile(`/proc/${pid}/status`, "utf8").catch(() => "");
  return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1] ?? 0) / 1024;
}

/** The highest resident memory of processes while something runs, in MB. */
async function watched<T>(pids: number[], work: () => Promise<T>) {
  const most = pids.map(() => 0);
  const timer = setInterval(async () => {
    for (const [i, pid] of pids.entries()) most[i] = Math.max(most[i] ?? 0, await resident(pid));
  }, 50);
  const begin = performance.now();
  const value = await work();
  const seconds = (performance.now() - begin) / 1_000;
  clearInterval(timer);
  return { value, seconds, most };
}

const folder = await mkdtemp(join(tmpdir(), "files-lab-"));
const env = {
  FILES_URL: join(folder, "kept"),
  ...(values.sealed && { ENCRYPTION_KEYS: randomBytes(32).toString("base64") }),
};
const more = { VIEW_KEY: "v".repeat(32), PUBLIC_URL, ALLOWED_HOSTS: "127.0.0.1,jobs.example" };
const stack = await startStack({ programs, env, bindings: { ...env, ...more } });
try {
  const make = (name: string, bytes: number) => {
    const params = { name: "make_file", arguments: { name, size: bytes } };
    return rpc(stack.url, "tools/call", params, { capabilities: {} });
  };
  const addressIn = (result: object) => {
    const [found = ""] = /https:[^\s"]+\/files\/[^\s"]+/.exec(JSON.stringify(result)) ?? [];
    return found.replace(PUBLIC_URL, stack.origin);
  };
  const download = async (address: string) => hashOf((await fetch(address)).body as AsyncIterable<Uint8Array>);
  // Memory at rest is measured after the first small file, when all code is loaded.
  await download(addressIn((await make("warm", 4_000_000)).result));
  const worker = stack.workers[0]?.process.pid ?? 0;
  const edge = stack.edge.process.pid;
  await new Promise((resolve) => setTimeout(resolve, 2_000));
  const rest = [await resident(worker), await resident(edge)];

  const bare = await watched([], async () => {
    await pipeline(Readable.from(madeOf("large", size)), createWriteStream(join(folder, "bare")));
    return hashOf(createReadStream(join(folder, "bare")));
  });
  await rm(join(folder, "bare"));
  const job = await watched([worker, edge], async () => {
    const first = await make("large", size);
    if (first.result.structuredContent.result) return first.result;
    for (;;) {
      const collect = { name: "await_result", arguments: { job_names: ["make_file_large"], timeout_seconds: 45 } };
      const { result } = await rpc(stack.url, "tools/call", collect, { capabilities: {} });
      const { results, errors, running } = result.structuredContent;
      if (running.length === 0) return { ...result, structuredContent: { result: results.make_file_large, errors } };
    }
  });
  const { result, errors } = job.value.structuredContent;
  if (!result) throw new Error(JSON.stringify(errors));
  const down = await watched([worker, edge], () => download(addressIn(job.value)));
  const isWhole = [bare.value, result.read, down.value].every((hash) => hash === result.file.sha256);
  const rate = (seconds: number) => `${Math.round(size / seconds / 1e6)} MB/s`;
  const above = (most: number[]) => most.map((mb, i) => Math.round(mb - (rest[i] ?? 0)));
  const [workerJob, edgeJob] = above(job.most);
  const [workerDown, edgeDown] = above(down.most);
  console.log(
    `${size} bytes${values.sealed ? ", encrypted" : ""}; whole: ${isWhole}; rest: worker ${Math.round(rest[0] ?? 0)} MB, edge ${Math.round(rest[1] ?? 0)} MB`,
  );
  console.log(`bare copy, written and read: ${rate(bare.seconds)}`);
  console.log(
    `job, written and read:       ${rate(job.seconds)}; above rest: worker ${workerJob} MB, edge ${edgeJob} MB`,
  );
  console.log(
    `download through the edge:   ${rate(down.seconds)}; above rest: worker ${workerDown} MB, edge ${edgeDown} MB`,
  );
  const isSmall = [workerJob, edgeJob, workerDown, edgeDown].every((mb) => Number(mb) <= 64);
  if (!isWhole || !isSmall) process.exitCode = 1;
} finally {
  await stack[Symbol.asyncDispose]();
  await rm(folder, { recursive: true, force: true });
}
