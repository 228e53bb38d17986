import { useRef, useState } from "hono/jsx/dom";
import { useReads } from "../lib/components.tsx";
import { call, type ListedJob } from "../lib/server.ts";
import { type Answer, JobList } from "./job-list.ts";
import type { StoredSize } from "./stored-data.tsx";

/** How often the list is read while the page is visible. */
const POLL_INTERVAL_MS = 5_000;

export interface JobQuery {
  status?: string;
  limit?: number;
  pages?: number;
  /** Any change of this number makes the whole list be read at once. */
  reads?: number;
}

/** The viewer's jobs, live, newest first; `jobs` is undefined until they have been read. */
export function useJobs({ status, limit = 50, pages = 1, reads }: JobQuery) {
  const [jobs, setJobs] = useState<readonly ListedJob[] | undefined>(undefined);
  const [storedSize, setStoredSize] = useState<StoredSize | undefined>(undefined);
  const [hasMore, setMore] = useState(false);
  const lastRead = useRef({ query: "", list: new JobList() });
  const read = async (end: AbortSignal) => {
    const query = JSON.stringify([status, limit, reads]);
    if (lastRead.current?.query !== query) lastRead.current = { query, list: new JobList() };
    const { list } = lastRead.current;
    await list.read(pages, async (cursor) => {
      const answer: Answer = await call("list_jobs", { limit, ...(status && { status }), ...(cursor && { cursor }) });
      end.throwIfAborted();
      if (cursor === undefined) setStoredSize(answer.stored);
      return answer;
    });
    setJobs(list.jobs);
    setMore(list.hasMore);
  };
  const outcome = useReads(read, POLL_INTERVAL_MS, [status, limit, pages, reads]);
  return { jobs, storedSize, hasMore, ...outcome };
}
