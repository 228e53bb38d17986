import { useEffect, useRef, useState } from "hono/jsx/dom";
import { isOpen, MAX_OPEN_ENTRIES, type TimelineEntry } from "../../core/jobs/index.ts";
import { useOutcome } from "../lib/components.tsx";
import { follow } from "../lib/follow.ts";
import { job as askJob, type JobInfo } from "../lib/server.ts";

/** How often a running job is read without a stream and with one. */
const POLL_INTERVAL_MS = 3_000;
const STREAM_POLL_INTERVAL_MS = 30_000;
/** The shortest time between two reads. */
const MIN_READ_INTERVAL_MS = 700;

/** A read that has passed at least this many numbers of records may have left others after them. */
const MIN_NUMBERS_OF_PART = 80;

/** A job, live, and its timeline. */
export function useJob(name: string) {
  const [job, setJob] = useState<JobInfo | undefined>(undefined);
  const [timeline, setTimeline] = useState<TimelineEntry[]>([]);
  const { onSuccess, onFailure, ...outcome } = useOutcome();
  const reader = useRef<JobReader | undefined>(undefined);
  useEffect(() => {
    const onRead = (info: JobInfo, entries: TimelineEntry[]) => {
      setTimeline(entries);
      setJob(info);
      onSuccess();
    };
    const current = new JobReader(name, onRead, onFailure);
    reader.current = current;
    return () => current.close();
  }, [name]);
  return { job, timeline, ...outcome, refresh: () => void reader.current?.read() };
}

/** Reads a job repeatedly until its end, at once if its stream brings news. */
class JobReader {
  readonly #name: string;
  readonly #onRead: (info: JobInfo, entries: TimelineEntry[]) => void;
  /** Returns whether the server would refuse another read as well. */
  readonly #onFailure: (error: unknown) => boolean;
  /** The records that were read, by number, and the first number that was not. */
  readonly #entries = new Map<number, TimelineEntry>();
  #next = 1;
  #isBusy = false;
  /** Whether to read again after the current read. */
  #isRequested = false;
  #isStreamOpen = false;
  #unfollow: (() => void) | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(
    name: string,
    onRead: (info: JobInfo, entries: TimelineEntry[]) => void,
    onFailure: (error: unknown) => boolean,
  ) {
    this.#name = name;
    this.#onRead = onRead;
    this.#onFailure = onFailure;
    void this.read();
  }

  async read(): Promise<void> {
    if (this.#isBusy) {
      this.#isRequested = true;
      return;
    }
    this.#isBusy = true;
    this.#isRequested = false;
    clearTimeout(this.#timer);
    let isOver = false;
    let waits = false;
    try {
      const info = await this.#readPart();
      const hasEnded = info.status !== "running";
      isOver = hasEnded && info.cleanup !== "running";
      waits = info.waits;
      if (hasEnded) this.#endStream();
      else this.#openStream(info.task);
    } catch (error) {
      isOver = this.#onFailure(error);
    }
    await new Promise((resolve) => setTimeout(resolve, MIN_READ_INTERVAL_MS));
    this.#isBusy = false;
    if (this.#isRequested) void this.read();
    // The stream does not report that a worker takes the job.
    else if (!isOver) this.#readLater(this.#isStreamOpen && !waits ? STREAM_POLL_INTERVAL_MS : POLL_INTERVAL_MS);
  }

  close(): void {
    clearTimeout(this.#timer);
    this.#unfollow?.();
  }

  async #readPart(): Promise<JobInfo> {
    // Of many open records, those due first are read, and questions: an answer may come at any time.
    const open = [...this.#entries.values()].filter(isOpen).sort((a, b) => (a.until ?? 0) - (b.until ?? 0));
    const numbers = open.slice(0, MAX_OPEN_ENTRIES).map(({ n }) => n);
    const info = await askJob(this.#name, this.#next, numbers);
    const { entries, next } = info.timeline;
    for (const entry of entries) this.#entries.set(entry.n, entry);
    this.#isRequested ||= next - this.#next >= MIN_NUMBERS_OF_PART;
    this.#next = next;
    this.#onRead(
      info,
      [...this.#entries.values()].sort((a, b) => a.n - b.n),
    );
    return info;
  }

  #readLater(ms: number): void {
    this.#timer = setTimeout(() => {
      if (document.visibilityState === "visible") void this.read();
      else this.#readLater(POLL_INTERVAL_MS);
    }, ms);
  }

  #openStream(task: string | undefined): void {
    if (task === undefined || this.#unfollow) return;
    this.#unfollow = follow(task, {
      onNews: () => void this.read(),
      onStream: (isStreamOpen) => {
        this.#isStreamOpen = isStreamOpen;
        // Reads what the stream has missed, or finds that the connection is lost.
        if (!isStreamOpen) void this.read();
      },
    });
  }

  #endStream(): void {
    this.#unfollow?.();
    this.#unfollow = undefined;
    this.#isStreamOpen = false;
  }
}
