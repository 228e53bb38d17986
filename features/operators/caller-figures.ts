/** Sends operators the figures of a caller: what they start and store, and whether deliveries fail. */
import type { ObjectSql } from "../../core/resonate/object-storage.ts";
import type { Callers } from "../../functions/objects/callers.ts";
import type { JobTable } from "../../functions/objects/job-table.ts";
import type { WebHooks } from "../web-hooks/web-hooks.ts";
import { ALMOST } from "./alerts.ts";

/** How often figures are sent, in milliseconds, and up to which number they count running jobs. */
const FIGURES = 60_000;
const MOST_RUNNING = 1_001;

interface Counted {
  /** Undefined where there are no operators. */
  callers: Callers | undefined;
  sql: ObjectSql;
  jobs: Pick<JobTable, "stored" | "pending">;
  hooks: Pick<WebHooks, "list">;
  /** The most bytes that the caller may store. */
  most: number;
  /** The caller's key; undefined while it is not known. */
  key(): string | undefined;
  /** Sets the object's alarm. */
  arm(): Promise<void>;
}

export class Figures {
  readonly #counted: Counted;
  /** The starts since figures were last sent. */
  #started = 0;
  /** When figures may be sent next. */
  #at = 0;
  /** What an alert is about, as last sent. */
  #signs = "";
  /** Whether figures have changed since they were sent. */
  #isLate = false;

  constructor(counted: Counted) {
    this.#counted = counted;
  }

  /** When figures that have changed are due; infinite while none has. */
  nextAt(): number {
    return this.#isLate ? this.#at : Infinity;
  }

  onStart(): void {
    this.#started += 1;
    this.send();
  }

  /** Sends the figures every {@link FIGURES}, and at once when an alert begins or ends. */
  send(): void {
    const { callers, sql, jobs, hooks, most } = this.#counted;
    const key = this.#counted.key();
    if (!callers || !key) return;
    const [now, bytes] = [Date.now(), jobs.stored];
    const failing = hooks.list().filter(({ status }) => !status.active || status.lastError !== null).length;
    const signs = `${failing} ${bytes > ALMOST * most}`;
    const isNews = signs !== this.#signs;
    if (now < this.#at && !isNews) {
      const isDue = !this.#isLate;
      this.#isLate = true;
      if (isDue) void this.#counted.arm();
      return;
    }
    const started = this.#started;
    const { written } = sql.rows;
    [this.#started, this.#at, this.#signs, this.#isLate] = [0, now + FIGURES, signs, false];
    sql.rows.written = 0;
    const running = jobs.pending(MOST_RUNNING).length;
    callers.operate("figure", { key, started, running, bytes, failing, rows: written, isNews }).catch(() => {
      this.#started += started;
      sql.rows.written += written;
    });
  }
}
