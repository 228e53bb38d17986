import { randomUUID } from "node:crypto";
import { type LogLine, type Program, run, until } from "../simulation/program.ts";

/**
 * A worker as a process of its own.
 *
 * @example
 * const attempts = async (worker: WorkerProcess, job: string) => (await worker.said(job, "job done")).length;
 */
export interface WorkerProcess extends Program {
  readonly healthUrl: string;
  about(job: string): LogLine[];
  /** Waits until it has logged `msg` about a job `times` times; resolves with all lines about that job. */
  said(job: string, msg: string, times?: number): Promise<LogLine[]>;
}

interface WorkerOptions {
  script?: string;
  /** The folder it runs in, if not this one. */
  cwd?: string;
  /** Modules that are loaded before it. */
  imports?: readonly string[];
}

/** Starts a worker and waits until jobs can reach it. */
export async function startWorker(
  env: Record<string, string>,
  { script = "worker/main.ts", ...options }: WorkerOptions = {},
): Promise<WorkerProcess> {
  const program = run(script, { ...options, env: { HEALTH_PORT: "0", ...env } });
  let ended = false;
  void program.exited.then(() => {
    ended = true;
  });
  const ready = await until(
    "the worker to be ready",
    () => {
      // Its first job may have ended it since.
      const said = program.logs().find(({ msg }) => msg === "ready");
      if (ended && !said) throw new Error(`the worker ended:\n${program.output()}`);
      return said;
    },
    60_000,
  ).catch(async (error) => {
    await program[Symbol.asyncDispose]();
    throw new Error(`${(error as Error).message}; it wrote:\n${program.output()}`);
  });
  const about = (job: string) => program.logs().filter((line) => line.job === job);
  return Object.assign(program, {
    healthUrl: String(ready.health_url),
    about,
    said: (job: string, msg: string, times = 1) =>
      until(`the worker to log "${msg}" about ${job}`, () => {
        const lines = about(job);
        return lines.filter((line) => line.msg === msg).length >= times ? lines : undefined;
      }),
  });
}

/** A worker group and a namespace of a test's own, so that tests can share a Resonate server. */
export function ownGroup() {
  const group = `g${randomUUID().slice(0, 8)}`;
  const namespace = `${group}/`;
  return { group, namespace, env: { RESONATE_GROUP: group, RESONATE_NAMESPACE: namespace } };
}
