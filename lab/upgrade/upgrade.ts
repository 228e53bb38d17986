/**
 * `npm run upgrade [-- --from COMMIT] [--object | --resonate PROGRAM [--next PROGRAM]]`: upgrades a running deployment part by
 * part from an earlier commit to this checkout, in each order, and back. Jobs begin before every step and end after it: timers, one
 * of which is due while the part is down, months, a range whose question stays open across the step, and a range that waits for a
 * month, all of a caller with a quota. A timer of a year runs throughout. Every part is killed, not stopped.
 *
 * Without `--resonate` the embedded server is also replaced, with `--object` as a Durable Object. With `--resonate`, only the edge
 * and the worker are replaced. `--next` also replaces that server by another release, on the same file: under running workers of
 * this checkout, and together with worker and edge of the earlier commit.
 *
 * Prints a line for each step, and exits with 1 if a job is lost, runs twice or is refused without a reason. Takes some minutes.
 */
import { randomBytes } from "node:crypto";
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { bearerBindings, callerAt } from "../../test/auth/support.ts";
import { accept, tasksAt } from "../../test/tasks/support.ts";
import { until } from "../../testing/simulation/program.ts";
import { freePort } from "../../testing/stack/port.ts";
import { startSampleArchive } from "../../tools/weather/sample-archive/server.ts";
import { type Generation, generationAt, generationOf, type Part, type Running, releaseOf } from "./generation.ts";

const { values } = parseArgs({
  options: {
    from: { type: "string", default: "1c007cb" },
    object: { type: "boolean", default: false },
    resonate: { type: "string" },
    next: { type: "string" },
  },
});
const host = values.object ? "object" : "node";

/** The parts, in the order in which they can start. */
const PARTS: readonly Part[] = ["server", "worker", "edge"];

const TOKEN = "upgrade-caller-token";
const LONG = { from: "2012-01", to: "2014-06" };
/** A range that waits for its last month, without a question. */
const WAITING = { longitude: -122.1, from: "2014-12", to: "2015-02" };
/** How long a part is down, and the length of a timer that is due in this time, in seconds. */
const AWAY = 3;
const DUE = 2;

/** The parts that one step replaces at the same time, with their new generations. */
type Step = Partial<Record<Part, Generation>>;

/** Executes the steps, one after another, in a deployment that begins with the generations `begins`. Resolves with the problems. */
async function upgrade(begins: Record<Part, Generation>, steps: readonly Step[]): Promise<string[]> {
  await using parts = new AsyncDisposableStack();
  const archive = parts.use(await startSampleArchive());
  const data = await mkdtemp(join(tmpdir(), "upgrade-"));
  parts.defer(() => rm(data, { recursive: true, force: true }));
  const ports = { server: await freePort(), worker: await freePort(), edge: await freePort() };
  const deployment = {
    RESONATE_URL: `http://127.0.0.1:${ports.server}`,
    RESONATE_TOKEN: "",
    RESONATE_GROUP: "upgrade",
    RESONATE_NAMESPACE: "upgrade/",
  };
  const environments: Record<Part, Record<string, string>> = {
    server: {},
    worker: { ...deployment, WEATHER_API_URL: archive.url, LEASE_SECONDS: "3" },
    edge: {
      ...deployment,
      ...bearerBindings({ alice: TOKEN }),
      TASK_KEY: randomBytes(32).toString("hex"),
      ALLOWED_HOSTS: "127.0.0.1,localhost",
      RATE_LIMIT: "0",
      MAX_JOBS: "500",
    },
  };
  const running = new Map<Part, Running>();
  parts.defer(async () => {
    for (const part of running.values()) await part[Symbol.asyncDispose]();
  });
  const start = async (part: Part, generation: Generation, isBack = false) => {
    // An edge of 1c007cb admits no jobs of a caller whose quota a later edge has taken over: see CHANGELOG.md.
    const env = { ...environments[part], ...(isBack && { MAX_JOBS: "0" }) };
    const options = { port: ports[part], env, data: join(data, part) };
    await mkdir(options.data, { recursive: true });
    running.set(part, await generation.start(part, options));
  };
  for (const part of PARTS) await start(part, begins[part]);
  const replace = async (step: Step) => {
    const parts = PARTS.filter((part) => part in step);
    for (const part of parts.toReversed()) await running.get(part)?.[Symbol.asyncDispose]();
    await new Promise((resolve) => setTimeout(resolve, AWAY * 1_000));
    for (const part of parts) {
      const to = step[part] as Generation;
      await start(part, to, part === "edge" && to === begins.edge);
    }
  };

  const edge = `http://127.0.0.1:${ports.edge}/mcp`;
  const alice = callerAt(edge, TOKEN);
  const tasks = tasksAt(edge, TOKEN);
  const problems: string[] = [];
  const names = new Set<string>();
  const checkList = async () => {
    const { jobs } = await alice.call("list_jobs", { limit: 100 });
    const isListed = new Set(jobs.map(({ job_name }: { job_name: string }) => job_name));
    for (const name of names) if (!isListed.has(name)) problems.push(`${name} is not in the caller's list`);
  };
  const year = { timer_name: "year" };
  const { fires_at } = await alice.call("set_timer", { ...year, seconds: 365 * 86_400 });
  for (const [i, step] of steps.entries()) {
    const latitude = 47.5 + i / 1_000;
    const month = { latitude, longitude: -122.3, year: 2012, month: 3 };
    const timer = await alice.call("set_timer", { timer_name: `step ${i}`, seconds: 8 });
    const gathering = await alice.call("start_gathering", month);
    const question = await tasks.call("weather_range", { latitude, longitude: -122.2, ...LONG });
    await tasks.reaches(question.taskId, "input_required", 30_000);
    archive.control.inject({ fault: { kind: "status", status: 503 }, month: WAITING.to });
    const range = await tasks.call("weather_range", { latitude, ...WAITING });
    const refused = archive.control.count(WAITING.to);
    await until("the range to wait", () => archive.control.count(WAITING.to) > refused);
    const late = await alice.call("set_timer", { timer_name: `late ${i}`, seconds: DUE });

    await replace(step);
    archive.control.clear();

    const again = await alice.call("start_gathering", month);
    if (again.job_name !== gathering.job_name) problems.push(`step ${i}: a repeated start made ${again.job_name}`);
    await tasks.update(question.taskId, { confirm: accept({ confirm: true }) });
    for (const { taskId } of [question, range]) await tasks.reaches(taskId, "completed", 60_000);
    const job_names = [...[timer, late].map((set) => set.job_name ?? set.promise_id), gathering.job_name];
    const { results, errors, running: left } = await alice.call("await_result", { job_names, timeout_seconds: 40 });
    for (const name of job_names) {
      names.add(name);
      if (!(name in results)) problems.push(`step ${i}: ${name} did not end: ${errors[name] ?? left}`);
    }
    const still = await alice.call("get_timer_status", year);
    if (still.status !== "running" || still.fires_at !== fires_at) problems.push(`step ${i}: year is ${still.status}`);
    // Each edge lists the jobs that were started at it; this checkout's also lists those of 1c007cb.
    if (step.edge === after) await checkList();
    const replaced = Object.entries(step).map(([part, { name }]) => `${part} is ${name}`);
    console.log(`  ${replaced.join(", ")}: ${problems.length === 0 ? "jobs went on" : problems.at(-1)}`);
  }
  for (const [query, count] of Object.entries(archive.control.requests.byQuery)) {
    if (count > 1 && !query.includes(`longitude=${WAITING.longitude}`))
      problems.push(`${query} was requested ${count} times`);
  }
  return problems;
}

const before = await generationOf(values.from, host);
const after = generationAt("this checkout", ".", host);
const release = values.resonate === undefined ? undefined : releaseOf(values.resonate);
const orders: Part[][] = release
  ? [
      ["worker", "edge"],
      ["edge", "worker"],
    ]
  : [
      ["server", "worker", "edge"],
      ["edge", "worker", "server"],
    ];
const plans: { title: string; begins: Record<Part, Generation>; steps: Step[] }[] = orders.map((order) => ({
  title: `${before.name} to ${after.name}, ${order.join(", then ")}, and back:`,
  begins: { server: release ?? before, worker: before, edge: before },
  steps: [...order.map((part) => ({ [part]: after })), ...order.toReversed().map((part) => ({ [part]: before }))],
}));
if (release && values.next !== undefined) {
  const next = releaseOf(values.next);
  plans.push(
    {
      title: `${release.name} to ${next.name}, under workers of ${after.name}:`,
      begins: { server: release, worker: after, edge: after },
      steps: [{ server: next }],
    },
    {
      title: `${before.name} on ${release.name} to ${after.name} on ${next.name}, at once:`,
      begins: { server: release, worker: before, edge: before },
      steps: [{ server: next, worker: after, edge: after }],
    },
  );
}
let failed = 0;
for (const { title, begins, steps } of plans) {
  console.log(title);
  const problems = await upgrade(begins, steps);
  for (const problem of problems) console.log(`  WRONG: ${problem}`);
  failed += problems.length;
}
console.log(failed === 0 ? "Every job went on." : `${failed} things went wrong.`);
process.exitCode = failed === 0 ? 0 : 1;
