/**
 * Makes concurrent calls while the worker, the edge, the Resonate server and the wrapped server are killed at random times, which
 * a seed determines. The wrapped server counts the calls that reach it.
 */
import { mkdir, mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { Random } from "../../test/support/random.ts";
import { COUNTING, serve } from "../../test/wrap/servers.ts";
import { connect, type Structured, structuredOf, wrappedStack } from "../../test/wrap/support.ts";
import type { WrapOptions } from "../../wrap/index.ts";

/** The number of concurrent calls. */
const LANES = 8;
/** The pause between kills, and until the restart, in milliseconds. */
const PAUSE = [500, 5_000] as const;
const AWAY = [0, 4_000] as const;
/** The longest call at the server, and the longest wait for the next end of a call, in milliseconds. */
const LONGEST = 6_000;
const QUIET = 400_000;

/** The transport to the wrapped server. */
export type Over = "http" | "stdio";

/** A call that a client makes: `write` may happen at most once, `read` may be repeated. */
interface Call {
  tool: "read" | "write";
  id: string;
  job?: string;
  /** Whether the call has no name and is made only once, because it cannot be requested again. */
  isNameless: boolean;
  /** The answer to a call without a name, if it got one. */
  answer?: string;
}

/** A part that can be killed and restarted. */
interface Part {
  kill(): Promise<unknown>;
  start(): Promise<unknown>;
}

export async function chaos(seed: number, kills: number, over: Over): Promise<string[]> {
  const again = `chaos --seed ${seed} --kills ${kills} --over ${over}`;
  console.log(again);
  const random = new Random(seed);
  const folder = await mkdtemp(join(tmpdir(), "counting-"));
  const file = join(folder, "calls");
  const streams = random.chance(50) && over === "http";
  await using server = over === "http" ? await listening(file, streams) : await program(file, join(folder, "pids"));
  await using stack = await wrappedStack({ ...server.options, name: "counting", after: 500 }, { atOnce: true });
  const [worker] = stack.workers;
  const parts: Record<string, Part> = {
    edge: stack.edge,
    resonate: stack.resonate,
    server,
    ...(worker && { worker }),
  };
  const callers = new Callers(stack.url, random);
  const kill = async () => {
    const counts = await killParts(parts, kills, random);
    callers.isOver = true;
    return counts;
  };
  const [killCounts] = await Promise.all([kill(), ...Array.from({ length: LANES }, (_, i) => callers.run(i))]);
  const { calls } = callers;
  const jobCalls = calls.filter(({ job }) => job !== undefined);
  const ends = await endsOf(stack.url, jobCalls);
  const report = new Report((await readFile(file, "utf8")).split("\n"));
  for (const call of calls) {
    if (call.isNameless && call.job === undefined) report.checkAnswer(call);
    else report.checkEnd(call, ends.get(call.id));
  }
  console.log(`${calls.length} calls, streams ${streams ? "can" : "cannot"} be picked up`);
  console.log(`killed: ${JSON.stringify(killCounts)}; ended: ${JSON.stringify(report.outcomes)}`);
  console.log(`why they failed: ${JSON.stringify(report.reasons, undefined, 2)}`);
  console.log(`Repeat with: npm run wrapped -- ${again}`);
  return report.problems;
}

/** Kills parts at random and starts them again, one after another. Resolves with the number of kills of each part. */
async function killParts(parts: Record<string, Part>, kills: number, random: Random): Promise<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (let i = 0; i < kills; i++) {
    await delay(random.int(...PAUSE));
    const name = random.pick(Object.keys(parts));
    counts[name] = (counts[name] ?? 0) + 1;
    await parts[name]?.kill();
    await delay(random.int(...AWAY));
    await parts[name]?.start();
  }
  return counts;
}

/** Callers that make random calls, each one after another, until it is over. */
class Callers {
  /** All calls so far. */
  readonly calls: Call[] = [];
  isOver = false;
  readonly #url: string;
  readonly #random: Random;

  constructor(url: string, random: Random) {
    this.#url = url;
    this.#random = random;
  }

  async run(lane: number): Promise<void> {
    for (let i = 0; !this.isOver; i++) {
      const tool = this.#random.chance(60) ? "write" : "read";
      const call: Call = { tool, id: `${tool}-${lane}-${i}`, isNameless: this.#random.chance(50) };
      this.calls.push(call);
      if (call.isNameless) await this.#callOnce(call);
      else await this.#callByName(call);
      await delay(this.#random.int(0, 1_000));
    }
  }

  async #callOnce(call: Call): Promise<void> {
    // Half of these calls end before they become jobs.
    const ms = this.#random.chance(50) ? this.#random.int(0, 200) : this.#random.int(0, LONGEST);
    const found = await calledOnce(this.#url, call.tool, { id: call.id, ms });
    if (found) call.answer = found.text;
    if (found?.job_name) call.job = found.job_name;
  }

  async #callByName(call: Call): Promise<void> {
    const { tool, id } = call;
    const found = await called(this.#url, tool, { id, ms: this.#random.int(0, LONGEST), job_name: id });
    call.job = found.job_name ?? `counting.${tool}.${id}`;
  }
}

/** How calls ended, and what is wrong with that. */
class Report {
  readonly problems: string[] = [];
  /** The number of calls by tool and outcome. */
  readonly outcomes: Record<string, number> = {};
  /** The number of jobs that failed, by reason. */
  readonly reasons: Record<string, number> = {};
  readonly #lines: readonly string[];

  /** @param lines the calls that reached the server */
  constructor(lines: readonly string[]) {
    this.#lines = lines;
  }

  /** Checks a call that did not become a job, as far as its caller knows. */
  checkAnswer(call: Call): void {
    const { tool, id, answer } = call;
    const times = this.#checkTimes(call);
    const isDone = answer?.includes(`${id} is done`) === true;
    count(this.outcomes, `${tool} without a job ${isDone ? "done" : answer === undefined ? "not answered" : "failed"}`);
    if (isDone && times === 0) this.problems.push(`${id} is done and was never made`);
    if (!isDone && answer !== undefined && times > 0 && /Nothing was done/.test(answer))
      this.problems.push(`${id} was made, and says: ${answer}`);
  }

  /** Checks a call by its job's end; undefined if the job has not ended. */
  checkEnd(call: Call, end: Structured | undefined): void {
    const { tool, id } = call;
    const times = this.#checkTimes(call);
    count(this.outcomes, `${tool} ${end?.status ?? "has not ended"}`);
    if (end?.status === "failed") {
      const error = end.error.replace(/\b20\d\d-\S+Z/, "…").slice(0, 160);
      count(this.reasons, `reached the server ${times} times: ${error}`);
    }
    if (end?.status === "complete") {
      if (!JSON.stringify(end.result ?? end.summary).includes(`${id} is done`))
        this.problems.push(`${id}: ${JSON.stringify(end)}`);
      if (times === 0) this.problems.push(`${id} is complete and was never made`);
    } else if (end?.status !== "failed") this.problems.push(`${id}: ${JSON.stringify(end)}`);
    else if (tool === "read") this.problems.push(`${id} failed, and could have been repeated: ${end.error}`);
    else if (times === 1 && !/unknown/.test(end.error))
      this.problems.push(`${id} was made once, and says: ${end.error}`);
  }

  /** Checks that a call reached the server at most once, unless it may be repeated. Returns how often it did. */
  #checkTimes({ tool, id }: Call): number {
    const times = this.#lines.filter((line) => line === `${tool} ${id}`).length;
    if (tool === "write" && times > 1) this.problems.push(`${id} reached the server ${times} times`);
    return times;
  }
}

function count(counts: Record<string, number>, name: string): void {
  counts[name] = (counts[name] ?? 0) + 1;
}

/** The server as a separate process. */
async function listening(file: string, streams: boolean) {
  const server = await serve(COUNTING, [], { CALLS: file, ...(streams && { STREAMS: "1" }) });
  return { ...server, options: { url: server.url, allowPrivate: true } };
}

/** The server as the worker's child, which the worker restarts. Killing it also kills one that a dead worker left behind. */
async function program(file: string, pids: string) {
  await mkdir(pids);
  const kill = async () => {
    for (const pid of await readdir(pids)) {
      try {
        process.kill(Number(pid), "SIGKILL");
      } catch {
        // The process has already ended.
      }
      await rm(join(pids, pid), { force: true });
    }
  };
  const options: Omit<WrapOptions, "name"> = {
    command: process.execPath,
    args: [COUNTING],
    env: { CALLS: file, PIDS: pids },
  };
  return { options, kill, start: async () => {}, [Symbol.asyncDispose]: kill };
}

/** Repeats a call until it is answered. All repetitions have the same name, and so count as one call. */
async function called(url: string, name: string, args: object): Promise<Structured> {
  for (;;) {
    try {
      const client = await connect(url);
      try {
        const result = await client.callTool({ name, arguments: { ...args } }, { timeout: 10_000 });
        const found = structuredOf(result);
        if (!/unavailable|Something went wrong/.test(found.text)) return found;
      } finally {
        await client.close();
      }
    } catch {
      // The edge is down.
    }
    await delay(300);
  }
}

/** Makes a call once; undefined if it gets no answer. */
async function calledOnce(url: string, name: string, args: object): Promise<Structured | undefined> {
  try {
    const client = await connect(url);
    try {
      return structuredOf(await client.callTool({ name, arguments: { ...args } }, { timeout: 10_000 }));
    } finally {
      await client.close();
    }
  } catch {
    return undefined;
  }
}

/** The outcome of each call's job, by the call's id. */
async function endsOf(url: string, calls: readonly Call[]): Promise<Map<string, Structured>> {
  const ends = new Map<string, Structured>();
  let deadline = Date.now() + QUIET;
  for (let at = 0; ends.size < calls.length && Date.now() < deadline; at += 20) {
    const left = calls.filter(({ id }) => !ends.has(id));
    const open = left.slice(at % left.length).slice(0, 20);
    const before = ends.size;
    const { statuses } = await called(url, "probe_status", { job_names: open.map(({ job }) => job) });
    for (const status of statuses ?? []) {
      const call = open.find(({ job }) => job === status.job_name);
      if (call && status.status !== "running") ends.set(call.id, status);
    }
    if (ends.size > before) deadline = Date.now() + QUIET;
    else await delay(100);
  }
  return ends;
}
