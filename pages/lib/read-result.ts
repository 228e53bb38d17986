/** Reads a result of any size, through the tool `probe_status`. */

/** What is read of a job's result. */
interface ResultQuery {
  job: string;
  /** The fields to read; all if undefined. */
  fields?: readonly string[] | undefined;
  /** The largest number of parts that are read. */
  maxParts?: number;
}

/** A result has more parts than are read. Another attempt would read them all again. */
export class ResultTooLarge extends Error {
  constructor() {
    super("The result is too large to be shown here.");
  }
}

/** A job's result. `probe` calls the tool. @throws {ResultTooLarge} if the result has too many parts */
export async function readResult(
  probe: (args: Record<string, unknown>) => Promise<Record<string, unknown>>,
  { job, fields, maxParts = Number.POSITIVE_INFINITY }: ResultQuery,
): Promise<unknown> {
  let text = "";
  for (let part = 0, offset = 0; part < maxParts; part += 1) {
    const args = { job_names: [job], result: "full", ...(fields && { fields }), ...(offset > 0 && { offset }) };
    const [status] = (await probe(args)).statuses as Record<string, unknown>[];
    if (!status || !("summary" in status)) return status?.result;
    const summary = status.summary as { part: string; next_offset?: number };
    text += summary.part;
    if (summary.next_offset === undefined) return JSON.parse(text);
    offset = summary.next_offset;
  }
  throw new ResultTooLarge();
}
