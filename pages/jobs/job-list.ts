/** The viewer's jobs, as far as they have been read: page by page, each of which can be read again. */
import type { ListedJob } from "../lib/server.ts";
import type { StoredSize } from "./stored-data.tsx";

/** After how many reads a page of older jobs is read again. Each read costs the viewer a part of its limit. */
const READS_PER_REFRESH = 6;

export interface Answer {
  jobs: ListedJob[];
  stored?: StoredSize;
  next_cursor?: string;
}

type Ask = (cursor: string | undefined) => Promise<Answer>;

/** Where a page begins: after a cursor, and after a job that began at `after`, ISO 8601. */
interface Place {
  cursor?: string;
  after?: string;
}

export class JobList {
  /** Newest first. */
  jobs: readonly ListedJob[] = [];
  #pages = 1;
  /** Where the unread jobs begin. */
  #next: Place | undefined;
  #reads = 0;
  /** Where the next page of older jobs to read again begins; undefined for the first of them. */
  #refreshPlace: Place | undefined;

  get hasMore(): boolean {
    return this.#next !== undefined;
  }

  /** Reads the newest jobs, and those of the first `pages` pages that have not been read. At times reads a page of older ones again. */
  async read(pages: number, ask: Ask): Promise<void> {
    // Without older pages, a job that a new one moves out of the first page leaves the list.
    if (this.#pages === 1) this.jobs = [];
    const second = await this.#readPage({}, ask);
    if (!second || this.#pages === 1) this.#next = second;
    while (this.#next && this.#pages < pages) {
      this.#next = await this.#readPage(this.#next, ask);
      this.#pages += 1;
    }
    this.#reads += 1;
    if (second && this.#pages > 1 && this.#reads % READS_PER_REFRESH === 0) await this.#refreshPage(second, ask);
  }

  async #refreshPage(second: Place, ask: Ask): Promise<void> {
    const end = await this.#readPage(this.#refreshPlace ?? second, ask);
    const oldest = this.jobs.at(-1)?.started_at ?? "";
    const isLast = !end?.after || oldest >= end.after;
    this.#refreshPlace = isLast ? undefined : end;
    if (isLast) this.#next = end;
  }

  /** Reads the jobs of a page, and returns where the next one begins. */
  async #readPage(place: Place, ask: Ask): Promise<Place | undefined> {
    const { jobs, next_cursor: cursor } = await ask(place.cursor);
    const { after = "~" } = place;
    const last = cursor === undefined ? "" : (jobs.at(-1)?.started_at ?? after);
    const names = new Set(jobs.map(({ job_name }) => job_name));
    // A known job that lies within the page, but is not in it, is gone or has another status.
    const others = this.jobs.filter(
      ({ job_name, started_at }) => !names.has(job_name) && (started_at >= after || started_at <= last),
    );
    this.jobs = [...others, ...jobs].sort(newestFirst);
    return cursor === undefined ? undefined : { cursor, after: last };
  }
}

const newestFirst = (a: ListedJob, b: ListedJob): number =>
  compare(b.started_at, a.started_at) || compare(b.job_name, a.job_name);

const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);
