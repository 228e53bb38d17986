/** Reports the work of an account's runners to its operators, as one worker and in the same form as other workers. */
import { JOB_FORMAT_VERSION, type RunnerNews, type WorkerReport, WorkerStats } from "../../../core/jobs/index.ts";
import {
  type Locatable,
  methodsInRole,
  type ObjectCalls,
  OPERATORS_ROLE,
  objectName,
} from "../../../core/resonate/index.ts";

/** How long events are gathered, and the shortest time between two reports, each of which writes some rows. */
const GATHERING_MS = 2_000;
const MIN_REPORT_INTERVAL_MS = 30_000;

/** The namespace of Durable Objects that contains the operators' object. */
export interface OperateObjects extends Locatable {
  get(id: object, options?: object): ObjectCalls;
}

/** The part of the operators' object that is used here. */
interface OperateMethods {
  report(report: WorkerReport): void;
}

interface RunnerReportsOptions {
  objects: OperateObjects;
  namespace: string;
  group: string;
  /** The largest number of jobs of a kind that run at once. */
  maxConcurrent: number;
}

/** Sends no report while nothing happens, so that the platform can put the server to sleep. */
export class RunnerReports {
  readonly #options: RunnerReportsOptions;
  readonly #stats = new WorkerStats(() => this.#arm(GATHERING_MS), Date.now()); // Report numbers must grow, also over a sleep.
  #kinds: RunnerNews["kinds"] = {};
  #running = 0;
  #unsent: WorkerReport | undefined;
  /** The earliest time of the next report, and its scheduled time, in milliseconds since the epoch. */
  #earliest = 0;
  #due = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(options: RunnerReportsOptions) {
    this.#options = options;
  }

  /** Adds the news of a runner. */
  add({ kinds, news }: RunnerNews): void {
    this.#kinds = kinds;
    this.#stats.add(news);
  }

  /** Adds `change`, which may be negative, to the number of running jobs. */
  addRunning(change: number): void {
    this.#running += change;
    this.#arm(MIN_REPORT_INTERVAL_MS);
  }

  /** Adds `change`, which may be negative, to the number of jobs that wait for a slot. */
  addWaiting(change: number): void {
    this.#stats.waiting += change;
  }

  #arm(delay: number): void {
    const due = Math.max(Date.now() + delay, this.#earliest);
    if (this.#timer !== undefined && this.#due <= due) return;
    clearTimeout(this.#timer);
    this.#due = due;
    this.#timer = setTimeout(() => void this.#send(), due - Date.now());
  }

  async #send(): Promise<void> {
    const { objects, namespace, group, maxConcurrent } = this.#options;
    this.#timer = undefined;
    this.#earliest = Date.now() + MIN_REPORT_INTERVAL_MS;
    this.#unsent ??= this.#stats.takeReport({
      worker: "runners",
      isRunner: true,
      group,
      connected: true,
      form: JOB_FORMAT_VERSION,
      kinds: this.#kinds,
      running: this.#running,
      most: maxConcurrent,
    });
    const hasMoreNews = this.#stats.hasNews;
    try {
      const object = objects.get(objects.idFromName(objectName(OPERATORS_ROLE, namespace)));
      await methodsInRole<OperateMethods>(object, OPERATORS_ROLE).report(this.#unsent);
      this.#unsent = undefined;
    } catch {
      // The report is sent again.
    }
    if (hasMoreNews && !this.#unsent) {
      // The report could not name all jobs.
      this.#earliest = 0;
      this.#arm(GATHERING_MS);
    } else if (this.#unsent || this.#running > 0) this.#arm(MIN_REPORT_INTERVAL_MS);
  }
}
