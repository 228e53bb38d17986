/** Reads a result of any size, through the tool `probe_status`. */

/** What is read of a job's result. */
interface Wanted {
  job: string;
  /** Those of its fields that are wanted; all if undefined. */
  fields?: readonly string[] | undefined;
  /** The most parts that are read. */
  most?: number;
}

/** A result has more parts than are read. Another attempt would read them all again. */
export class TooMuch extends Error {
  constructor() {
    super("The result is too large to be shown here.");
  }
}

/** A job's result. `probe` calls the tool. @throws {TooMuch} if the result has too many parts */
export async function wholeOf(
  probe: (args: Record<string, unknown>) => Promise<Record<string, unknown>>,
  { job, fields, most = Number.POSITIVE_INFINITY }: Wanted,
): Promise<unknown> {
  let text = "";
  for (let part = 0, offset = 0; part < most; part += 1) {
    const asked = { job_names: [job], result: "full", ...(fields && { fields }), ...(offset > 0 && { offset }) };
    const [status] = (await probe(asked)).statuses as Record<string, unknown>[];
    if (!status || !("summary" in status)) return status?.result;
    const summary = status.summary as { part: string; next_offset?: number };
    text += summary.part;
    if (summary.next_offset === undefined) return JSON.parse(text);
    offset = summary.next_offset;
  }
  throw new TooMuch();
}
