/**
 * Begins the record of a caller, and finds the jobs again of one whose object has lost its storage. A promise marks that the record
 * was begun. Every step is bounded.
 */
import { searchPage, startedJob } from "../../core/jobs/index.ts";
import { childOf, getOf, type ResonateClient, recordMarkId, rootOf, SearchRefused } from "../../core/resonate/index.ts";
import type { JobTable } from "./job-table.ts";

/** How often a failing search is tried. */
const MAX_SEARCHES = 3;

/** The tag of the mark that says which object began the record. */
const OBJECT_TAG = "durable-mcp:object";

/** Where the search continues. */
interface Search {
  cursor?: string | undefined;
  limit?: number | undefined;
  tries: number;
}

export class Recovery {
  readonly #jobs: JobTable;
  readonly #client: ResonateClient;
  readonly #namespace: string;

  constructor(jobs: JobTable, client: ResonateClient, namespace: string) {
    this.#jobs = jobs;
    this.#client = client;
    this.#namespace = namespace;
  }

  /** The caller's key; undefined for an object that has not begun. */
  get key(): string | undefined {
    return this.#jobs.get("key");
  }

  /** Whether the recovery has further steps. */
  get isPending(): boolean {
    return this.#search !== null;
  }

  /** Begins the record of a caller. If another object has begun it before, its jobs must be found. */
  async begin(key: string): Promise<void> {
    if (this.key !== undefined) return;
    const by = crypto.randomUUID();
    const mark = childOf(recordMarkId(this.#namespace + key), Date.now() - 1, { tags: { [OBJECT_TAG]: by } });
    // Callers without identity share one object, and have no quota: their record needs no jobs.
    const isNew = key === "" || (await this.#client.call(mark))?.tags[OBJECT_TAG] === by;
    this.#jobs.transaction(() => {
      this.#search = isNew ? null : { tries: 0 };
      this.#jobs.set("key", key);
    });
  }

  /** Whether the mark of the record is gone, as all promises of a forgotten caller are. */
  async isMarkGone(): Promise<boolean> {
    return this.key !== "" && (await this.#client.call(getOf(recordMarkId(this.#owner)))) === undefined;
  }

  /** Records a page of the promises with the caller's tags, if the server allows searches. */
  async step(): Promise<void> {
    const search = this.#search;
    if (search === null) return;
    const { cursor, limit, tries } = search;
    try {
      const page = await searchPage(this.#client, this.#owner, { cursor, ...(limit !== undefined && { limit }) });
      for (const record of page.promises) {
        // The record that the caller started a shared job is a child of the job's promise.
        if (rootOf(record.id) === record.id) this.#jobs.note(startedJob(record, this.key ?? ""), Date.now());
        else await this.#enterShared(rootOf(record.id), record.createdAt);
      }
      this.#search = page.cursor === undefined ? null : { cursor: page.cursor, limit: page.limit, tries: 0 };
    } catch (error) {
      const isLast = error instanceof SearchRefused || tries + 1 >= MAX_SEARCHES;
      this.#search = isLast ? null : { cursor, limit, tries: tries + 1 };
      if (!isLast) throw error;
    }
  }

  async #enterShared(id: string, startedAt: number): Promise<void> {
    const record = await this.#client.call(getOf(id));
    if (record) this.#jobs.note(startedJob(record, this.key ?? "", startedAt), Date.now());
  }

  get #owner(): string {
    return this.#namespace + (this.key ?? "");
  }

  get #search(): Search | null {
    return JSON.parse(this.#jobs.get("recovery") ?? "null");
  }

  set #search(search: Search | null) {
    this.#jobs.set("recovery", JSON.stringify(search));
  }
}
