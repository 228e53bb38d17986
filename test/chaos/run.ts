/** One chaos run: the planned jobs and faults, then a quiet time, then the comparison. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";
import { splitGeneration } from "../../core/resonate/ids.ts";
import { until } from "../../testing/stack/program.ts";
import { isAccount } from "../support/account.ts";
import { client2025, currentClient } from "../support/clients.ts";
import { type Stack, startStack } from "../support/stack.ts";
import { type Stored, storedJobs } from "../support/stored.ts";
import { Calls } from "./calls.ts";
import { asksInVain, type Evidence, reconcile } from "./check/reconcile.ts";
import { ClientLog, type Violation } from "./client-log.ts";
import { Clients, untilOver } from "./clients.ts";
import { Faults } from "./faults.ts";
import type { Plan, PlannedFault } from "./plan.ts";

export interface RunOptions {
  workers: number;
  /** The workers' lease in milliseconds. */
  lease: number;
  /** How long all jobs may take to end after the last disruption, in milliseconds. */
  quiet: number;
  /** A worker program that replaces the product's, as a path from the repository root. */
  worker?: string;
  /** Puts jobs to sleep beside those of the plan. `data` is the folder of the embedded server's state. */
  putToSleep?: (stack: Stack, data: string) => Promise<Sleepers>;
  env?: Record<string, string>;
  say?: (line: string) => void;
}

/** Sleeping jobs, some of which fire during the run. */
export interface Sleepers {
  /** How many have fired so far. */
  fired: number;
  /** Checks that those due before `before` have completed, and that none fired early. */
  reckon(log: ClientLog, before: number): Promise<void>;
}

export interface Outcome extends Evidence {
  violations: Violation[];
  /** The injected faults. */
  faults: PlannedFault[];
  /** The largest number of jobs that ran at the same time. */
  mostRunning: number;
  /** How many sleeping timers have fired. */
  sleepersFired: number;
  /** How long the jobs took to end after the last fault, in milliseconds. */
  settled: number;
}

/** How many clients of each revision look at jobs throughout the run. */
const READERS = 2;

/** How long reading everything again may take, in milliseconds. Each page of a list needs a search over all jobs. */
const REREADING = 120_000;

/** The pause between two checks whether all jobs have ended, in milliseconds. */
const LOOK_AGAIN = 1_000;

export async function runChaos(plan: Plan, options: RunOptions): Promise<Outcome> {
  const { lease, quiet, putToSleep, say = () => {} } = options;
  const data = await mkdtemp(join(tmpdir(), "chaos-"));
  await using cleanup = new AsyncDisposableStack();
  cleanup.defer(() => rm(data, { recursive: true, force: true }));
  const stack = cleanup.use(await startSubject(options, data));
  const sleepers = await putToSleep?.(stack, data);
  const log = new ClientLog();
  const over = new AbortController();
  cleanup.defer(() => over.abort());
  const calls = new Calls(stack.url, log, over.signal);
  const connections = await Promise.all([currentClient, client2025].map(({ connect }) => connect(stack.url)));
  const clients = new Clients({ calls, log, clients: connections });
  const faults = new Faults(stack, log);
  faults.watchStalls(over.signal);
  let mostRunning = 0;

  const injected = plan.faults.filter((fault) => faults.isOurs(fault));
  const watching = everySecond(over.signal, async () => {
    if (sleepers) return; // each check would read all of them
    mostRunning = Math.max(mostRunning, (await storedJobs(stack, "pending").catch(() => new Map())).size);
  });
  for (let i = 0; i < READERS; i++) for (const client of connections) clients.read(client).catch(untilOver);
  const driven = plan.jobs.map(async (job) => {
    await calls.pause(job.at);
    await clients.drive(job);
  });
  const done = Promise.all(driven.map((job) => job.catch(untilOver)));
  say(`${plan.jobs.length} jobs to start and ${injected.length} faults to inject in ${plan.duration / 1_000} s`);
  await injectAll(faults, injected, plan.duration);

  stack.archive.control.clear();
  const quietFrom = Date.now();
  say("faults are over; waiting for every job to end");
  await allEnded(stack, log, done, quiet);
  const settled = Date.now() - quietFrom;
  over.abort();
  await Promise.all([done, watching]);

  const jobs = await storedJobs(stack);
  await sleepers?.reckon(log, quietFrom);
  await readAgain({ stack, log, faults, jobs });
  const evidence: Evidence = {
    log,
    jobs,
    requests: stack.archive.control.requests.log,
    disruptions: faults.disruptions,
    allowedDelay: allowedDelay(lease, stack),
  };
  return {
    ...evidence,
    violations: reconcile(evidence),
    faults: injected,
    mostRunning,
    sleepersFired: sleepers?.fired ?? 0,
    settled,
  };
}

/** Starts the stack that has to stand the faults, with short times so that a run shows many recoveries. */
function startSubject({ workers, lease, worker, env }: RunOptions, data: string): Promise<Stack> {
  return startStack({
    workers,
    ...(process.env.RESONATE_URL === undefined && { own: { data } }),
    ...(worker !== undefined && { programs: { edge: "functions/index.ts", worker } }),
    env: { LEASE_SECONDS: String(lease / 1_000), DRAIN_SECONDS: "1.5", UPSTREAM_TIMEOUT_SECONDS: "3", ...env },
  });
}

/** Injects the faults at their times, and waits until the plan's `duration`, in milliseconds, is over. */
async function injectAll(faults: Faults, planned: Plan["faults"], duration: number): Promise<void> {
  await Promise.all(
    planned.map(async (fault) => {
      await delay(fault.at);
      await faults.inject(fault);
    }),
  );
  await delay(Math.max(0, duration - (planned.at(-1)?.at ?? 0)));
}

/** How late a job may be: that of a killed worker is dispatched again after its lease, and must then be claimed and executed. */
function allowedDelay(lease: number, { server }: Stack): number {
  const again = server || isAccount ? 0 : 30_000; // the standalone server repeats a dispatch that nobody claimed after half a minute
  return lease + again + 10_000;
}

/** Waits until every client has its answers and no job runs, for at most `ms`. */
async function allEnded(stack: Stack, log: ClientLog, done: Promise<unknown>, ms: number): Promise<void> {
  const deadline = Date.now() + ms;
  const patience = new AbortController();
  const answered = await Promise.race([done.then(() => true), delay(ms, false, { signal: patience.signal })]);
  patience.abort();
  if (!answered) return log.violation("lost", `a client got no answer within ${ms / 1_000} s after the last fault`);
  const none = async () => {
    const running = [...(await storedJobs(stack, "pending")).values()];
    if (running.every((job) => asksInVain(job, log.wanted.get(splitGeneration(job.name).base)))) return true;
    // Each check reads everything, which slows the server down.
    await delay(LOOK_AGAIN);
    return false;
  };
  // The comparison reports jobs that still run.
  await until("every job to end", none, Math.max(0, deadline - Date.now())).catch(() => {});
}

interface Rereading {
  stack: Stack;
  log: ClientLog;
  faults: Faults;
  jobs: ReadonlyMap<string, Stored>;
}

/** Kills everything once more. Ended jobs must be unchanged afterwards, on the server and for old and new clients. */
async function readAgain({ stack, log, faults, jobs }: Rereading): Promise<void> {
  await faults.restartAll();
  const again = await storedJobs(stack);
  for (const [name, job] of jobs) {
    if (!isDeepStrictEqual(again.get(name), job)) log.violation("changed", "stored otherwise after a restart", name);
  }
  for (const name of again.keys()) if (!jobs.has(name)) log.violation("invented", "there after a restart", name);
  const over = new AbortController();
  const calls = new Calls(stack.url, log, over.signal);
  await using newcomer = await currentClient.connect(stack.url);
  const clients = new Clients({ calls, log, clients: [newcomer] });
  const names = [...log.wanted.values()].flatMap(({ acknowledged }) => acknowledged ?? []);
  const patience = setTimeout(() => over.abort(), REREADING);
  try {
    for (let i = 0; i < names.length; i += 100) {
      await calls.persist(async () => (await clients.probe(newcomer, names.slice(i, i + 100))) || undefined);
    }
    const listed = await clients.list(newcomer);
    for (const name of names) {
      if (listed?.has(name) === false) log.violation("lost", "list_jobs does not list it", name);
    }
    for (const name of listed ?? []) if (!again.has(name)) log.violation("invented", "only list_jobs has it", name);
  } catch (error) {
    untilOver(error);
    log.violation("lost", `not all could be read again in ${REREADING / 1_000} s after a restart`);
  } finally {
    clearTimeout(patience);
  }
}

async function everySecond(over: AbortSignal, look: () => Promise<void>): Promise<void> {
  while (!over.aborted) {
    await look();
    await delay(1_000, undefined, { signal: over }).catch(() => {});
  }
}
