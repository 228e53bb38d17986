import type { RemoteStore } from "../../core/jobs/remote-store.ts";
import { isLost, lostWords } from "../../core/jobs/unhandled.ts";
import { decodeValue } from "../../core/resonate/codec.ts";
import type { PromiseRecord } from "../../core/resonate/connection/protocol.ts";
import { executionMarkId } from "../../core/resonate/ids.ts";
import type { JobExecution } from "../../worker/execution/ending.ts";
import type { Figures } from "../operators/figures.ts";
import { type Mark, markedBefore, needsMark, restAfter } from "./crash-loop.ts";

/**
 * Suspends a job for a while if its last workers were lost one after the other at the same point, as the job may crash its
 * workers and the other jobs in them. Resolves with whether the job is suspended.
 */
export async function suspendCrashLoop(
  { acquired, found, lease, cached, reporter, job, log }: JobExecution,
  feeds: RemoteStore["feeds"],
  figures: Figures | undefined,
): Promise<boolean> {
  const { id, version } = lease;
  if (!needsMark(cached.journal, version)) return false;
  let before: PromiseRecord | undefined;
  for (const each of markedBefore(cached.journal, version)) before ??= await lease.get(executionMarkId(id, each));
  const { begun, rests }: Mark = before ? (decodeValue(before.param) as Mark) : { begun: 0 };
  const rest = rests ? 0 : restAfter(begun);
  if (rest === 0 || (await isMismatched(acquired.promise, feeds))) {
    await lease.create(executionMarkId(id, version), { begun: begun + 1 } satisfies Mark, "resolved");
    return false;
  }
  const due = Math.ceil(Date.now() + rest);
  const mark = await lease.create(executionMarkId(id, version), { begun, rests: true } satisfies Mark, { due });
  const reason = lostWords(due);
  log.error({ reason }, "job blocked");
  figures?.waits({ job, kind: found.implementation.job.kind, state: "blocked", says: reason });
  await reporter.blocked(reason);
  return lease.suspend([mark.id]);
}

/** Whether the job has recorded nothing because its code does not fit its journal, and not because workers were lost. */
async function isMismatched(promise: PromiseRecord, feeds: RemoteStore["feeds"]): Promise<boolean> {
  const { blocked } = (await feeds.newest(promise)).entry ?? {};
  return blocked !== undefined && !isLost(blocked);
}
