/** How many bytes are stored of a job. */
import { decodeValue } from "./codec.ts";
import type { PromiseRecord, Value } from "./connection/protocol.ts";
import { partsIn } from "./parts.ts";

/** The header of a job's value that says what is stored of its steps, of what it has told, and of its child jobs, in bytes. */
export const STORED = "durable-mcp-stored";

/** What each job takes besides: its record, the task, the progress feed. */
const EACH = 1_000;

/** The longest table of contents of a result that is kept in parts, in characters of base64. */
const CONTENTS = 100_000;

/**
 * What a job takes: its arguments, and once it has ended its result and what its worker says is stored beside. Where no worker
 * says it, the parts of a large result.
 */
export function sizeOf({ param, value }: Pick<PromiseRecord, "param" | "value">): number {
  return EACH + bytesIn(param) + bytesIn(value) + (besideIn(value) ?? partsOf(value));
}

/** What a worker says is stored beside a job's arguments and result; undefined where none does. */
function besideIn({ headers }: Value): number | undefined {
  const bytes = Number(headers?.[STORED]);
  return bytes >= 0 ? bytes : undefined;
}

function partsOf(value: Value): number {
  return (value.data?.length ?? 0) < CONTENTS ? (partsIn(decodeValue(value))?.characters ?? 0) : 0;
}

/** The bytes in base64. */
export const bytesIn = ({ data }: Value): number => Math.ceil(((data?.length ?? 0) * 3) / 4);
