import { LeaseLost } from "../../core/engine/job-lease.ts";
import { type LeasedTask, type Send, TaskLease, type Watch } from "../../core/engine/lease/lease.ts";
import type { WorkerFeature } from "../../core/feature.ts";
import { reasonOf } from "../../core/jobs/line-log.ts";
import type { ResonateClient } from "../../core/resonate/connection/client.ts";
import { ResonateRefused } from "../../core/resonate/connection/failures.ts";
import type { PromiseWatch } from "../../core/resonate/connection/promise-watch.ts";
import type { Acquired, LeaseRef, OperationKind } from "../../core/resonate/connection/protocol.ts";
import type { ServerRules } from "../../core/resonate/connection/server-rules.ts";
import { type Heartbeat, now } from "./heartbeat.ts";
import type { JournalCache } from "./journal-cache.ts";

interface TaskLeasesOptions {
  client: ResonateClient;
  /** The id of this worker. */
  pid: string;
  /** The length of a lease, which is also how long an unreachable server is retried. */
  leaseTimeMs: number;
  heartbeat: Heartbeat;
  journals: JournalCache;
  watcher: PromiseWatch;
  rules: ServerRules;
  /** In the order in which they act around what is recorded under a lease: the first is outermost. */
  features: readonly WorkerFeature[];
}

/** Takes leases on tasks, and makes requests under them. */
export class TaskLeases {
  readonly #options: TaskLeasesOptions;

  constructor(options: TaskLeasesOptions) {
    this.#options = options;
  }

  /**
   * Takes the lease on a task and keeps it alive; undefined if the task has another version, or its job has ended. With
   * `isPatient`, an unreachable server is retried.
   */
  async claim({ id, version }: LeaseRef, isPatient = false): Promise<Acquired | undefined> {
    const { client, pid, leaseTimeMs, heartbeat, journals } = this.#options;
    const requestedAt = now();
    const records = journals.recordsWanted({ id, version });
    const data = { id, version, pid, ttl: leaseTimeMs, records };
    const patience = isPatient ? leaseTimeMs : undefined;
    const answer = await client.send("task.acquire", data, { origin: id, patience });
    if (answer.status !== 200) return undefined;
    heartbeat.start(answer.data.task, requestedAt);
    return answer.data;
  }

  /** Ends the lease on a task, so that the server dispatches it again; false if another worker has it. */
  async release({ id, version }: LeaseRef): Promise<boolean> {
    const { client, leaseTimeMs, heartbeat } = this.#options;
    heartbeat.stop({ id, version });
    const answer = await client.send("task.release", { id, version }, { origin: id, patience: leaseTimeMs });
    return answer.status === 200;
  }

  /** The requests that may be made under the lease on a task. */
  on(task: LeasedTask): TaskLease {
    const { client, watcher, rules, leaseTimeMs, features } = this.#options;
    const origin = task.cleansUp ?? task.task.id;
    const send: Send = (kind, data) =>
      client.send(kind as OperationKind, data as never, { origin, patience: leaseTimeMs }).catch((error) => {
        throw unanswered(kind, error);
      });
    // A promise may be awaited through any number of executions, and only the last one listens.
    const { id: job, createdAt } = task.promise;
    const listening = { by: `${job} ${createdAt}`, execution: task.task.version };
    const watch: Watch = (id, fresh, listener) => watcher.watch(id, fresh, listener, createdAt, listening);
    return new TaskLease(task, { send, watch, rules, features });
  }
}

/** The error of a request that was not answered. */
function unanswered(kind: string, error: unknown): LeaseLost {
  const isRefused = error instanceof ResonateRefused && error.status === 400;
  const message = isRefused ? `the Resonate server refuses the request ${kind}` : reasonOf(error);
  return new LeaseLost(message, { reason: isRefused ? "refused" : "unreachable", cause: error });
}
