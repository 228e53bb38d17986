import { useState } from "hono/jsx/dom";
import { usePolling } from "../lib/components.tsx";
import { call, type ListedJob, Refused } from "../lib/server.ts";
import type { Stored } from "./kept.tsx";

/** How often the list is read while the page is visible, in milliseconds. */
const EVERY = 5_000;

export interface Wanted {
  status?: string;
  limit?: number;
  pages?: number;
  /** Any change of this number makes the list be read at once. */
  reads?: number;
}

interface Answer {
  jobs: ListedJob[];
  stored?: Stored;
  next_cursor?: string;
}

/** The viewer's jobs, live, newest first; `jobs` is undefined until they have been read. */
export function useJobs({ status, limit = 50, pages = 1, reads }: Wanted) {
  const [jobs, setJobs] = useState<ListedJob[] | undefined>(undefined);
  const [stored, setStored] = useState<Stored | undefined>(undefined);
  const [hasMore, setMore] = useState(false);
  const [isLost, setLost] = useState(false);
  const [refused, setRefused] = useState<Refused | undefined>(undefined);
  const read = async (over: AbortSignal) => {
    try {
      const all: ListedJob[] = [];
      let cursor: string | undefined;
      for (let i = 0; i < pages; i++) {
        const answer: Answer = await call("list_jobs", { limit, ...(status && { status }), ...(cursor && { cursor }) });
        all.push(...answer.jobs);
        if (i === 0 && !over.aborted) setStored(answer.stored);
        cursor = answer.next_cursor;
        if (cursor === undefined) break;
      }
      if (over.aborted) return;
      setJobs(all);
      setMore(cursor !== undefined);
      setLost(false);
      setRefused(undefined);
    } catch (error) {
      if (over.aborted) return;
      if (error instanceof Refused) setRefused(error);
      else setLost(true);
    }
  };
  usePolling(read, EVERY, [status, limit, pages, reads]);
  return { jobs, stored, hasMore, isLost, refused };
}
