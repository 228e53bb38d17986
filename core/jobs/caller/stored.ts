/** How many bytes are stored of a caller's jobs. */
import { NotStarted } from "../../definitions/job.ts";
import { partsIn } from "../../jobs/parts.ts";
import { decodeValue } from "../../store/codec.ts";
import type { PromiseRecord } from "../../store/connection/protocol.ts";

/** What each job takes besides its arguments and its result: its record, the task, the progress feed. */
const EACH = 1_000;

/** The longest table of contents of a result that is kept in parts, in characters of base64. */
const CONTENTS = 100_000;

/** The caller's jobs take as many bytes as they may. */
export class StorageExceeded extends NotStarted {
  override name = "StorageExceeded";

  constructor(most: number) {
    super(
      `what is stored of your jobs comes to the ${most} bytes that a caller may have (MAX_STORED_BYTES). ` +
        "Room comes back when ended jobs are removed: by forget_jobs, and by the deployment's retention",
    );
  }
}

/** What a job takes: its arguments, and once it has ended its result, with the parts in which a large one is kept. */
export function sizeOf({ param, value }: Pick<PromiseRecord, "param" | "value">): number {
  const isShort = (value.data?.length ?? 0) < CONTENTS;
  const parts = isShort ? partsIn(decodeValue(value)) : undefined;
  return EACH + bytesIn(param) + bytesIn(value) + (parts?.characters ?? 0);
}

/** The bytes in base64. */
const bytesIn = ({ data }: { data?: string }): number => Math.ceil(((data?.length ?? 0) * 3) / 4);
