import { useEffect, useRef, useState } from "hono/jsx/dom";
import { isOpen, MOST_OPEN, type TimelineEntry } from "../../core/jobs/feed/timeline.ts";
import { useOutcome } from "../lib/components.tsx";
import { follow } from "../lib/follow.ts";
import { job as askJob, type JobInfo } from "../lib/server.ts";

/** How often a running job is read without a stream and with one, in milliseconds. */
const EVERY = { polled: 3_000, streamed: 30_000 };
/** The shortest time between two reads, in milliseconds. */
const PAUSE = 700;

/** A look that has passed at least this many numbers of records may have left others after them. */
const MANY = 80;

/** A job, live, and its timeline. */
export function useJob(name: string) {
  const [job, setJob] = useState<JobInfo | undefined>(undefined);
  const [timeline, setTimeline] = useState<TimelineEntry[]>([]);
  const { succeeded, failed, ...outcome } = useOutcome();
  const looking = useRef<{ refresh(): void }>({ refresh: () => {} });

  useEffect(() => {
    const known = new Map<number, TimelineEntry>();
    let next = 1;
    let isStreamed = false;
    let isBusy = false;
    let isAsked = false;
    let unfollow: (() => void) | undefined;
    let timer: ReturnType<typeof setTimeout> | undefined;

    const look = async () => {
      if (isBusy) {
        isAsked = true;
        return;
      }
      isBusy = true;
      isAsked = false;
      clearTimeout(timer);
      let isOver = false;
      let waits = false;
      try {
        // Of many open records, the look reads those due first, and questions: an answer may come at any time.
        const open = [...known.values()].filter(isOpen).sort((a, b) => (a.until ?? 0) - (b.until ?? 0));
        const numbers = open.slice(0, MOST_OPEN).map(({ n }) => n);
        const found = await askJob(name, next, numbers);
        for (const entry of found.timeline.entries) known.set(entry.n, entry);
        const hasMore = found.timeline.next - next >= MANY;
        next = found.timeline.next;
        setTimeline([...known.values()].sort((a, b) => a.n - b.n));
        setJob(found);
        succeeded();
        isAsked ||= hasMore;
        const hasEnded = found.status !== "running";
        isOver = hasEnded && found.cleanup !== "running";
        waits = found.waits;
        if (hasEnded) {
          unfollow?.();
          unfollow = undefined;
          isStreamed = false;
        } else if (found.task !== undefined && !unfollow) {
          unfollow = follow(found.task, {
            onNews: look,
            onStream(isOpen) {
              isStreamed = isOpen;
              // Reads what the stream has missed, or finds that the connection is lost.
              if (!isOpen) look();
            },
          });
        }
      } catch (error) {
        isOver = failed(error);
      }
      await new Promise((resolve) => setTimeout(resolve, PAUSE));
      isBusy = false;
      if (isAsked) look();
      // The stream does not report that a worker takes the job.
      else if (!isOver) timer = setTimeout(tick, isStreamed && !waits ? EVERY.streamed : EVERY.polled);
    };
    const tick = () => {
      if (document.visibilityState === "visible") look();
      else timer = setTimeout(tick, EVERY.polled);
    };
    looking.current.refresh = look;
    look();
    return () => {
      clearTimeout(timer);
      unfollow?.();
    };
  }, [name]);

  return { job, timeline, ...outcome, refresh: () => looking.current.refresh() };
}
