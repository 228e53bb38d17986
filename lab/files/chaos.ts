/**
 * `npm run chaos:files`: jobs store encrypted files of 50 MB (`--size BYTES`) while all parts are killed in turn, for a minute
 * (`--minutes N`); `--seed N` sets the order of kills. `--on folder`, and `--on s3` for a server that speaks S3 (versitygw, which
 * `VERSITYGW` names), use worker, Resonate server and edge as processes; `--on r2` uses an account in one process, whose jobs run
 * in its Workers. Each job must end with a complete file, by its hash in another step and through the edge, or fail with an
 * explanation. Apart from one file per job, nothing may be left.
 */
import { randomInt } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { parseArgs } from "node:util";
import { hashOf, madeOf } from "../../test/files/fixture/runs.ts";
import { Random } from "../../test/support/random.ts";
import { rpc } from "../../test/support/rpc.ts";
import { PUBLIC_URL, startSubject } from "./subjects.ts";

const { values } = parseArgs({
  options: {
    size: { type: "string", default: "50000000" },
    minutes: { type: "string", default: "1" },
    on: { type: "string", default: "folder" },
    seed: { type: "string", default: String(randomInt(2 ** 31)) },
  },
});
const size = Number(values.size);
const random = new Random(Number(values.seed));
/** How many jobs are under way at the same time. */
const BESIDE = 3;

/** Repeats work that fails while a part is down. */
async function persistent<T>(work: () => Promise<T>): Promise<T> {
  for (let n = 1; ; n++) {
    try {
      return await work();
    } catch (error) {
      if (n === 200) throw error;
      await delay(300);
    }
  }
}

const folder = await mkdtemp(join(tmpdir(), "files-chaos-"));
const subject = await startSubject(values.on, folder);
const problems: string[] = [];
const ended = { whole: 0, failed: 0 };
const kills: Record<string, number> = {};

/** The last answer about a job, and its text. */
async function outcomeOf(name: string) {
  const call = async (tool: string, args: object) => {
    const params = { name: tool, arguments: args };
    const { result, error } = await rpc(`${subject.origin}/mcp`, "tools/call", params, { capabilities: {} });
    if (!result || /is the same call safe|could not be reached|at capacity/.test(JSON.stringify(result)))
      throw new Error(JSON.stringify(error ?? result));
    return result;
  };
  await persistent(() => call("make_file", { name, size, pace: 1 }));
  for (;;) {
    const asked = { job_names: [`make_file_${name}`], timeout_seconds: 20 };
    const result = await persistent(() => call("await_result", asked));
    const { results = {}, errors = {}, running = [] } = result.structuredContent ?? {};
    if (running.length === 0)
      return {
        text: JSON.stringify(result.content),
        result: Object.values(results)[0],
        error: Object.values(errors)[0],
      };
  }
}

async function check(name: string): Promise<void> {
  const { text, result, error } = await outcomeOf(name);
  if (!result) {
    ended.failed += 1;
    if (!/\w+ \w+/.test(JSON.stringify(error ?? ""))) problems.push(`${name}: failed without words: ${text}`);
    return;
  }
  const sha256 = await hashOf(madeOf(name, size));
  const { file, read } = result as { file: { sha256: string }; read: string };
  const [address = ""] = /https:[^\s"\\]+\/files\/[^\s"\\]+/.exec(text) ?? [];
  const through = await persistent(async () => {
    const response = await fetch(address.replace(PUBLIC_URL, subject.origin));
    if (!response.ok) throw new Error(`the edge answered ${response.status}`);
    return hashOf(response.body as unknown as AsyncIterable<Uint8Array>);
  });
  if (file.sha256 !== sha256 || read !== sha256 || through !== sha256) problems.push(`${name}: is not whole`);
  else ended.whole += 1;
}

try {
  console.log(`chaos:files --on ${values.on} --seed ${values.seed} --minutes ${values.minutes} --size ${size}`);
  const end = Date.now() + Number(values.minutes) * 60_000;
  let n = 0;
  const jobs = Array.from({ length: BESIDE }, async () => {
    while (Date.now() < end) await check(`chaos ${n++}`);
  });
  while (Date.now() < end) {
    await delay(random.int(1_000, 5_000));
    const [name, part] = random.pick(Object.entries(subject.parts));
    await part?.kill();
    await delay(random.int(0, 1_000));
    await part?.start();
    kills[name] = (kills[name] ?? 0) + 1;
  }
  await Promise.all(jobs);
  const { before, after } = await subject.left();
  // Each file is stored as two objects: its bytes and its description.
  if (after.length !== 2 * ended.whole) problems.push(`${after.length} objects are left of ${ended.whole} files`);
  console.log(
    `${ended.whole} files of ${size} bytes arrived whole, ${ended.failed} jobs failed in words; killed: ${JSON.stringify(kills)}`,
  );
  const unfinished = before.filter((key) => /[~?]/.test(key)).length;
  console.log(
    `left by lost attempts: ${before.length - after.length}, of which ${unfinished} are unfinished writes; beyond them nothing but the files`,
  );
} finally {
  await subject[Symbol.asyncDispose]();
  await rm(folder, { recursive: true, force: true });
}
for (const problem of problems) console.error(problem);
process.exitCode = problems.length === 0 && ended.whole > 0 ? 0 : 1;
