/** Sends operators what a caller uses: what it starts and stores, and whether its deliveries fail. */
import type { ObjectPart, ObjectRecord, PartHost, SubscriptionView } from "../../core/jobs/index.ts";
import type { Remote } from "../../core/resonate/index.ts";
import { ALMOST_FULL_SHARE } from "./alerts.ts";
import type { OperateCalls } from "./calls.ts";

/** How often the usage is sent, in milliseconds. */
const INTERVAL_MS = 60_000;

/** Up to which number running jobs are counted. */
const MAX_COUNTED_JOBS = 1_001;

interface UsageOptions {
  host: Pick<PartHost, "sql" | "arm">;
  record: Pick<ObjectRecord, "key"> & { jobs: Pick<ObjectRecord["jobs"], "stored" | "pending"> };
  /** Calls the operators' object. */
  operators(): Remote<Pick<OperateCalls, "usage">>;
  subscriptions(): SubscriptionView[];
  /** How many bytes the caller may store. */
  maxBytes: number;
}

export class CallerUsageReporter implements ObjectPart {
  readonly name = "operators";
  readonly #options: UsageOptions;
  /** The starts since the usage was last sent. */
  #startCount = 0;
  /** When it may be sent next. */
  #nextSendAt = 0;
  /** What an alert is about, as last sent. */
  #signs = "";
  /** Whether the usage has changed since it was sent. */
  #isChanged = false;

  constructor(options: UsageOptions) {
    this.#options = options;
  }

  /** When usage that has changed is due; infinite while it has not. */
  nextAt(): number {
    return this.#isChanged ? this.#nextSendAt : Number.POSITIVE_INFINITY;
  }

  run(): void {
    this.#send();
  }

  onStart(): void {
    this.#startCount += 1;
    // After the transaction.
    queueMicrotask(() => this.#send());
  }

  afterNote(): void {
    this.#send();
  }

  /** Sends the usage every {@link INTERVAL_MS}, and at once when an alert begins or ends. */
  #send(): void {
    const { host, record, operators, subscriptions, maxBytes } = this.#options;
    const { key, jobs } = record;
    if (!key) return;
    const [now, bytes] = [Date.now(), jobs.stored];
    const failing = subscriptions().filter(({ status }) => !status.active || status.lastError !== null).length;
    const signs = `${failing} ${bytes > ALMOST_FULL_SHARE * maxBytes}`;
    const isNews = signs !== this.#signs;
    if (now < this.#nextSendAt && !isNews) {
      const isFirstChange = !this.#isChanged;
      this.#isChanged = true;
      if (isFirstChange) void host.arm();
      return;
    }
    const started = this.#startCount;
    const { written } = host.sql.rows;
    this.#startCount = 0;
    this.#nextSendAt = now + INTERVAL_MS;
    this.#signs = signs;
    this.#isChanged = false;
    host.sql.rows.written = 0;
    const running = jobs.pending(MAX_COUNTED_JOBS).length;
    operators()
      .usage({ key, started, running, bytes, failing, rows: written, isNews })
      .catch(() => {
        this.#startCount += started;
        host.sql.rows.written += written;
      });
  }
}
