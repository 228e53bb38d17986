/** How a pass over a job ends: what is stored, remembered and said of it. */

import { type Mark, markedBefore, markId, needsMark, restAfter } from "../../core/engine/crash-loop.ts";
import type { ExecutionEnd } from "../../core/engine/execution.ts";
import type { TaskLease } from "../../core/engine/lease.ts";
import { toStored } from "../../core/engine/values.ts";
import type { RemoteStore } from "../../core/jobs/remote-store.ts";
import { isLost, lostWords, wakeupOf } from "../../core/jobs/unhandled.ts";
import { decodeValue } from "../../core/store/codec.ts";
import type { Acquired, PromiseRecord } from "../../core/store/protocol.ts";
import { type Instruments, type LineLog, thrown } from "./instruments.ts";
import type { JournalCache, Remembered } from "./journal-cache.ts";
import type { Reporter } from "./reporter.ts";

/** How it ended: settled, asleep until something it waits for has happened, or given up here. */
export type Ending = "complete" | "failed" | "asleep" | "blocked" | "left";

/** A pass over a job. */
export interface Run {
  acquired: Pick<Acquired, "task" | "promise">;
  lease: TaskLease;
  remembered: Remembered;
  reporter: Reporter;
  /** The kind of job. */
  kind: string;
  log: LineLog;
}

interface Shared {
  histories: JournalCache;
  instruments: Instruments;
}

/** Ends a pass over a job as it came out. @throws {LeaseLost} */
export async function conclude(outcome: ExecutionEnd, run: Run, { histories, instruments }: Shared) {
  const { acquired, lease, remembered, reporter, kind, log } = run;
  const { task, promise } = acquired;
  switch (outcome.kind) {
    case "complete":
    case "failed": {
      // What was on its way to be told is told no more.
      reporter.close();
      const error = outcome.kind === "failed" ? storedError(outcome.error) : undefined;
      if (outcome.kind === "complete") await lease.fulfill("resolved", outcome.value);
      else await lease.fulfill("rejected", error);
      const reason = error && { reason: error.message };
      // Where it was thrown is for whoever wrote the function; callers get the reason only.
      const where = outcome.kind === "failed" && outcome.error instanceof Error && { error: thrown(outcome.error) };
      const duration_ms = Date.now() - promise.createdAt;
      log.info({ outcome: outcome.kind, duration_ms, ...reason, ...where }, "job done");
      instruments.settled(kind, outcome.kind);
      return outcome.kind;
    }
    case "asleep":
      remembered.history.version = task.version;
      histories.put(promise.id, { ...remembered, journal: reporter.newest });
      return "asleep";
    case "blocked": {
      log.warn({ reason: outcome.reason }, "job blocked");
      await reporter.blocked(outcome.reason);
      // Looked at again with pauses: code that fits may be back.
      const { id, due } = wakeupOf(promise.id, Date.now());
      await lease.create(id, undefined, { due });
      if (!(await lease.suspend([id]))) log.debug("looked at again at once");
      return "blocked";
    }
  }
}

/**
 * Leaves a job alone for a while whose workers were lost, one after the other, at the same point: it may be what ends
 * them, and with them what runs beside it. Whether it does.
 */
export async function rests({ lease, remembered, reporter, log }: Run, journals: RemoteStore["feeds"]) {
  const { id, version } = lease;
  if (!needsMark(remembered.history, version)) return false;
  let before: PromiseRecord | undefined;
  for (const each of markedBefore(remembered.history, version)) before ??= await lease.get(markId(id, each));
  const { begun, rests }: Mark = before ? (decodeValue(before.param) as Mark) : { begun: 0 };
  const rest = rests ? 0 : restAfter(begun);
  if (rest === 0 || (await isBlocked(id, journals))) {
    await lease.create(markId(id, version), { begun: begun + 1 } satisfies Mark, "resolved");
    return false;
  }
  const due = Math.ceil(Date.now() + rest);
  const mark = await lease.create(markId(id, version), { begun, rests: true } satisfies Mark, { due });
  log.error({ reason: lostWords(due) }, "job blocked");
  await reporter.blocked(lostWords(due));
  return lease.suspend([mark.id]);
}

/** Whether code that does not fit what a job has done is why it leaves no records. */
async function isBlocked(id: string, journals: RemoteStore["feeds"]): Promise<boolean> {
  const { blocked } = (await journals.newest(id)).entry ?? {};
  return blocked !== undefined && !isLost(blocked);
}

/**
 * What a failed job stores: an Error with a short message and no stack, whatever was thrown. Everyone who may read the
 * job reads it.
 */
function storedError(thrown: unknown): Error {
  const { name, message } = toStored(thrown);
  const attempts = (thrown as { attempts?: unknown } | undefined)?.attempts;
  const gaveUp = `gave up after ${attempts} ${attempts === 1 ? "attempt" : "attempts"}: `;
  const error = new Error(typeof attempts === "number" ? gaveUp + message : message);
  if (name === "ProtocolFailure") error.name = name;
  Object.defineProperty(error, "stack", { value: undefined });
  return error;
}
