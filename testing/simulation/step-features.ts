/** What features do around the steps of simulated jobs. */
import { createHash } from "node:crypto";
import type { JournalRecord, StepFeature } from "../../core/engine/index.ts";
import { atMostOnce } from "../../features/at-most-once/step.ts";
import { refuseCapturedState } from "../../features/captured-state/step.ts";
import { FileStorage } from "../../features/files/kept-files.ts";
import { files } from "../../features/files/step.ts";
import { memoryStore } from "../../features/files/storage/memory.ts";
import { resumedSteps } from "../../features/resume/step.ts";
import { stepLimits, type TakeLimit } from "../../features/step-limits/step.ts";
import { jobStorageLimit } from "../../features/storage-limit/step.ts";

interface SimulatedFeatures {
  /** The records of the steps that an earlier attempt at the job has finished, by their paths. */
  finishedSteps?: ReadonlyMap<string, JournalRecord> | undefined;
  /** Default: no limit is ever reached. */
  takeLimit?: TakeLimit;
  /** Where files are kept; undefined if none are. */
  fileStorage?: FileStorage | undefined;
  /** Whether steps that change variables of their function are refused. Default: no; it takes time. */
  refusesCapturedState?: boolean;
}

/** In the order in which they act, as in a worker. */
export function stepFeatures({
  finishedSteps,
  takeLimit = unlimited,
  fileStorage,
  refusesCapturedState = false,
}: SimulatedFeatures = {}): StepFeature[] {
  return [
    ...(finishedSteps ? [resumedSteps(finishedSteps)] : []),
    stepLimits(takeLimit),
    filesOfAnyVersion(fileStorage),
    atMostOnce,
    ...(refusesCapturedState ? [refuseCapturedState] : []),
    jobStorageLimit,
  ];
}

/** The files of one simulated job, in memory. */
export const filesInMemory = (): FileStorage => new FileStorage({ objects: memoryStore(), hash: hashOfFile });

function hashOfFile() {
  const hash = createHash("sha256");
  return { update: (bytes: Uint8Array) => void hash.update(bytes), digest: () => hash.digest("hex") };
}

const unlimited: TakeLimit = async () => () => {};

/** With a constant version, file references do not change after the death of a worker, so that executions can be compared. */
function filesOfAnyVersion(storage: FileStorage | undefined): StepFeature {
  const { attempt: withFiles } = files({ storage });
  return {
    async attempt(attempt, next) {
      const { path, step, job, lease } = attempt;
      const own = { path, step, job, lease: { id: lease.id, run: lease.run, version: 1 }, outsideBytes: 0 };
      const value = await withFiles(own, next);
      attempt.outsideBytes += own.outsideBytes;
      return value;
    },
  };
}
