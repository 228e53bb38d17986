import { useEffect, useState } from "hono/jsx/dom";
import { call, type ListedJob, Refused } from "../lib/server.ts";

/** How often the list is read while the page is seen, in milliseconds. */
const EVERY = 5_000;

export interface Wanted {
  status?: string;
  limit?: number;
  /** How many pages of the list to read: a bounded number, however many jobs there are. */
  pages?: number;
}

interface Answer {
  jobs: ListedJob[];
  next_cursor?: string;
}

/** The caller's jobs, newest first, as they are now; undefined until they are known. */
export function useJobs({ status, limit = 50, pages = 1 }: Wanted) {
  const [jobs, setJobs] = useState<ListedJob[] | undefined>(undefined);
  const [hasMore, setMore] = useState(false);
  const [isLost, setLost] = useState(false);
  const [refused, setRefused] = useState<Refused | undefined>(undefined);
  useEffect(() => {
    let isOver = false;
    let isBusy = false;
    const read = async () => {
      if (document.visibilityState !== "visible" || isBusy) return;
      isBusy = true;
      try {
        const all: ListedJob[] = [];
        let cursor: string | undefined;
        for (let i = 0; i < pages; i++) {
          const answer: Answer = await call("list_jobs", {
            limit,
            ...(status && { status }),
            ...(cursor && { cursor }),
          });
          all.push(...answer.jobs);
          cursor = answer.next_cursor;
          if (cursor === undefined) break;
        }
        if (isOver) return;
        setJobs(all);
        setMore(cursor !== undefined);
        setLost(false);
        setRefused(undefined);
      } catch (error) {
        if (isOver) return;
        if (error instanceof Refused) setRefused(error);
        else setLost(true);
      } finally {
        isBusy = false;
      }
    };
    read();
    const ticker = setInterval(read, EVERY);
    document.addEventListener("visibilitychange", read);
    return () => {
      isOver = true;
      clearInterval(ticker);
      document.removeEventListener("visibilitychange", read);
    };
  }, [status, limit, pages]);
  return { jobs, hasMore, isLost, refused };
}
