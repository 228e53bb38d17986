import { useRef, useState } from "hono/jsx/dom";
import { usePolling } from "../lib/components.tsx";
import { call, type ListedJob, Refused } from "../lib/server.ts";
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
  const [isLost, setLost] = useState(false);
  const [refused, setRefused] = useState<Refused | undefined>(undefined);
  const known = useRef({ of: "", list: new JobList() });
  const read = async (over: AbortSignal) => {
    const of = JSON.stringify([status, limit, reads]);
    if (known.current?.of !== of) known.current = { of, list: new JobList() };
    const { list } = known.current;
    try {
      await list.read(pages, async (cursor) => {
        const answer: Answer = await call("list_jobs", { limit, ...(status && { status }), ...(cursor && { cursor }) });
        over.throwIfAborted();
        if (cursor === undefined) setStored(answer.stored);
        return answer;
      });
      setJobs(list.jobs);
      setMore(list.hasMore);
      setLost(false);
      setRefused(undefined);
    } catch (error) {
      if (over.aborted) return;
      if (error instanceof Refused && error.status !== 429 && error.status < 500) setRefused(error);
      else setLost(true);
    }
  };
  usePolling(read, EVERY, [status, limit, pages, reads]);
  return { jobs, stored, hasMore, isLost, refused };
}
