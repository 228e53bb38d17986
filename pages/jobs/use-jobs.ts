import { useRef, useState } from "hono/jsx/dom";
import { useReads } from "../lib/components.tsx";
import { call, type ListedJob } from "../lib/server.ts";
import { type Answer, JobList } from "./job-list.ts";
import type { Stored } from "./kept.tsx";

/** How often the list is read while the page is visible, in milliseconds. */
const EVERY = 5_000;

export interface Wanted {
  status?: string;
  limit?: number;
  pages?: number;
  /** Any change of this number makes the whole list be read at once. */
  reads?: number;
}

/** The viewer's jobs, live, newest first; `jobs` is undefined until they have been read. */
export function useJobs({ status, limit = 50, pages = 1, reads }: Wanted) {
  const [jobs, setJobs] = useState<readonly ListedJob[] | undefined>(undefined);
  const [stored, setStored] = useState<Stored | undefined>(undefined);
  const [hasMore, setMore] = useState(false);
  const known = useRef({ of: "", list: new JobList() });
  const read = async (over: AbortSignal) => {
    const of = JSON.stringify([status, limit, reads]);
    if (known.current?.of !== of) known.current = { of, list: new JobList() };
    const { list } = known.current;
    await list.read(pages, async (cursor) => {
      const answer: Answer = await call("list_jobs", { limit, ...(status && { status }), ...(cursor && { cursor }) });
      over.throwIfAborted();
      if (cursor === undefined) setStored(answer.stored);
      return answer;
    });
    setJobs(list.jobs);
    setMore(list.hasMore);
  };
  const outcome = useReads(read, EVERY, [status, limit, pages, reads]);
  return { jobs, stored, hasMore, ...outcome };
}
