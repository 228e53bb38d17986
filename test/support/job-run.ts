/** Tasks and executions of jobs, for tests of what features do around them. */
import * as z from "zod";
import { Journal } from "../../core/engine/journal.ts";
import type { TaskLease } from "../../core/engine/lease/lease.ts";
import { defineJob, implement, type JobOptions } from "../../core/index.ts";
import type { LineLog } from "../../core/jobs/line-log.ts";
import type { JobMemory, JobRun, JobTask } from "../../core/jobs/task-feature.ts";
import type { PromiseRecord } from "../../core/resonate/connection/protocol.ts";

/** A log that keeps its lines, each with the fields of the logs that it is a child of. */
export function keptLog() {
  const lines: Record<string, unknown>[] = [];
  const logWith = (bound: object): LineLog => {
    const write = (fields: object | string, message?: string) => {
      lines.push(typeof fields === "string" ? { ...bound, msg: fields } : { ...bound, ...fields, msg: message });
    };
    return { debug: write, info: write, warn: write, error: write, child: (more) => logWith({ ...bound, ...more }) };
  };
  return { lines, log: logWith({}) };
}

interface Given {
  /** The options of the job's definition. */
  job?: Partial<JobOptions<object>>;
  promise?: Partial<PromiseRecord>;
  /** The requests under the lease that the test expects. */
  lease?: Partial<TaskLease>;
  /** The version of the job's task. */
  version?: number;
  call?: Partial<JobTask["call"]>;
  log?: LineLog;
}

/** A claimed task of the job `tea_1`. */
export function jobTask({ job, promise, lease, version = 1, call, log = keptLog().log }: Given = {}) {
  const definition = defineJob({ kind: "tea", args: z.object({}), id: () => "1", ...job });
  const id = "tea_1";
  const record: PromiseRecord = {
    id,
    state: "pending",
    param: {},
    value: {},
    tags: {},
    timeoutAt: Date.now() + 3_600_000,
    createdAt: Date.now(),
    ...promise,
  };
  return {
    claim: { task: { id, version }, promise: record },
    promise: record,
    call: { func: definition.kind, args: [{}], version: 1, seed: "s", ...call },
    code: { implementation: implement(definition, async () => ({})), version: 1 },
    kind: definition.kind,
    name: id,
    lease: { id, version, ...lease } as TaskLease,
    log,
  };
}

/** An execution of that job, and how it was concluded. */
export function jobRun({ memory = { journal: new Journal() }, ...given }: Given & { memory?: JobMemory } = {}) {
  const ends: JobRun["end"][] = [];
  const run: JobRun = {
    ...jobTask(given),
    memory,
    args: {},
    stop: new AbortController(),
    runtime: { deadline: Number.POSITIVE_INFINITY, promiseOf: (name: string) => name } as JobRun["runtime"],
    sleep: async () => true,
    conclude: async (end) => {
      ends.push(end);
      return end.kind;
    },
  };
  return { run, ends };
}
