import { randomUUID } from "node:crypto";
import { type LogLine, type Program, run, untilProgram } from "./program.ts";

/**
 * A worker in its own process.
 *
 * @example
 * const attempts = async (worker: WorkerProcess, job: string) => (await worker.waitForLog(job, "job done")).length;
 */
export interface WorkerProcess extends Program {
  readonly healthUrl: string;
  /** The log lines about a job so far. */
  logsOf(job: string): LogLine[];
  /** Waits until the worker has logged `msg` about a job `times` times; resolves with all log lines about that job. */
  waitForLog(job: string, msg: string, times?: number): Promise<LogLine[]>;
}

interface WorkerOptions {
  script?: string;
  /** The folder that the worker runs in. Default: the current one. */
  cwd?: string;
  /** Modules that are loaded before the worker. */
  imports?: readonly string[];
}

/** Starts a worker and waits until jobs can reach it. */
export async function startWorker(
  env: Record<string, string>,
  { script = "worker/main.ts", ...options }: WorkerOptions = {},
): Promise<WorkerProcess> {
  if (/^(warn|error|fatal|silent)$/.test(env.LOG_LEVEL ?? "")) {
    throw new Error(`LOG_LEVEL: a test reads lines of level info of a worker's log, which ${env.LOG_LEVEL} omits`);
  }
  const program = run(script, { ...options, env: { HEALTH_PORT: "0", STATE_CHECKS: "always", ...env } });
  // Its first job may already have made the worker exit.
  const isReady = () => program.logs().find(({ msg }) => msg === "ready");
  const ready = await untilProgram(program, "the worker is ready", isReady).catch(async (error) => {
    await program[Symbol.asyncDispose]();
    throw error;
  });
  const logsOf = (job: string) => program.logs().filter((line) => line.job === job);
  return Object.assign(program, {
    healthUrl: String(ready.health_url),
    logsOf,
    waitForLog: (job: string, msg: string, times = 1) =>
      untilProgram(program, `the worker logs "${msg}" about ${job}`, () => {
        const lines = logsOf(job);
        return lines.filter((line) => line.msg === msg).length >= times ? lines : undefined;
      }),
  });
}

/** A worker group and a namespace for one test, so that tests can share a Resonate server. */
export function ownGroup() {
  const group = `g${randomUUID().slice(0, 8)}`;
  const namespace = `${group}/`;
  return { group, namespace, env: { RESONATE_GROUP: group, RESONATE_NAMESPACE: namespace } };
}
