/** Jobs as a client sees them: which have finished, and a result however large. */
import { ProtocolError } from "@modelcontextprotocol/client";
import * as z from "zod";
import { ErrorCode, uriOf } from "../core/tools/index.ts";
import type { Connection } from "./connection.ts";

/** How long one request waits, in seconds. */
export const WAIT_SECONDS = 45;

const FinishedJob = z.looseObject({
  job_name: z.string(),
  status: z.string(),
  result: z.unknown().optional(),
  error: z.string().optional(),
  summary: z.looseObject({ part: z.string() }).optional(),
  next: z.string().optional(),
});
export type FinishedJob = z.infer<typeof FinishedJob>;

/** Those of the jobs, of at most a hundred, that finish within so many seconds, or of which there is nothing to wait for. */
export async function awaitJobs(
  connection: Connection,
  names: string[],
  seconds: number,
  signal?: AbortSignal,
): Promise<string[]> {
  const args = { job_names: names, timeout_seconds: seconds, result: "none" };
  const { running } = await connection.call("await_result", args, { seconds, ...(signal && { signal }) });
  return names.filter((name) => !(running as string[] | undefined)?.includes(name));
}

/** A job with its complete result, however large that is. A part that the server refuses for a while does not cost those before it. */
export async function readJob(connection: Connection, name: string, signal?: AbortSignal): Promise<FinishedJob> {
  const read = (uri: string) =>
    connection.ask(
      (client) =>
        client.readResource({ uri }, signal && { signal }).catch((error) => {
          if (error instanceof ProtocolError && error.code === ErrorCode.InvalidParams) return { contents: [] };
          throw error;
        }),
      signal,
    );
  let text = "";
  for (let uri: string | undefined = uriOf(name); uri !== undefined;) {
    const { contents } = await read(uri);
    const [content] = contents;
    if (!content || !("text" in content)) {
      return { job_name: name, status: "not_found", error: "no job of this caller has this name" };
    }
    const job: FinishedJob = FinishedJob.parse(JSON.parse(String(content.text)));
    text += job.summary?.part ?? "";
    if (!job.summary) return job;
    uri = job.next;
    if (uri === undefined) {
      const { summary: _, next: __, ...rest } = job;
      return { ...rest, result: JSON.parse(text) };
    }
  }
  throw new Error(`${name}: its result could not be read`);
}
