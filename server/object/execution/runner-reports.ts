/** Reports what the runners of an account do to its operators, all as one worker, in the form of workers elsewhere. */
import { FORM } from "../../../core/jobs/form.ts";
import { Figures, type RunnerNews } from "../../../core/jobs/operating/figures.ts";
import type { WorkerReport } from "../../../core/jobs/operating/worker-report.ts";
import { type Locatable, operateName } from "../../../core/store/object-address.ts";

/** How long what happens at once is gathered, and the least time between two reports, in milliseconds: each writes some rows. */
const GATHER = 2_000;
const PAUSE = 30_000;

/** The objects among which is that of the operators. */
export interface OperateObjects extends Locatable {
  get(id: object, options?: object): { operate(call: "report", given: [WorkerReport]): Promise<object> };
}

interface RunnerReportsOptions {
  objects: OperateObjects;
  namespace: string;
  group: string;
  /** How many jobs of a kind run at once. */
  most: number;
}

/** Says nothing while nothing happens, so that the platform can put the server to sleep. */
export class RunnerReports {
  readonly #options: RunnerReportsOptions;
  readonly #figures = new Figures(() => this.#arm(GATHER), Date.now()); // Above its counts before it slept.
  #kinds: RunnerNews["kinds"] = {};
  #running = 0;
  #unsent: WorkerReport | undefined;
  /** When the next report may be sent, and when it is, in milliseconds since the epoch. */
  #next = 0;
  #due = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(options: RunnerReportsOptions) {
    this.#options = options;
  }

  /** Takes in what a runner has told. */
  add({ kinds, news }: RunnerNews): void {
    this.#kinds = kinds;
    this.#figures.add(news);
  }

  /** So many jobs more run. */
  runs(more: number): void {
    this.#running += more;
    this.#arm(PAUSE);
  }

  /** So many jobs more wait for a slot. */
  waits(more: number): void {
    this.#figures.waiting += more;
  }

  #arm(within: number): void {
    const due = Math.max(Date.now() + within, this.#next);
    if (this.#timer !== undefined && this.#due <= due) return;
    clearTimeout(this.#timer);
    this.#due = due;
    this.#timer = setTimeout(() => void this.#send(), due - Date.now());
  }

  async #send(): Promise<void> {
    const { objects, namespace, group, most } = this.#options;
    this.#timer = undefined;
    this.#next = Date.now() + PAUSE;
    const about = { worker: "runners", isRunner: true as const, group, connected: true, form: FORM };
    this.#unsent ??= this.#figures.take({ ...about, kinds: this.#kinds, running: this.#running, most });
    try {
      const answer = await objects.get(objects.idFromName(operateName(namespace))).operate("report", [this.#unsent]);
      if ("done" in answer) this.#unsent = undefined;
    } catch {
      // It is sent again.
    }
    if (this.#unsent || this.#running > 0) this.#arm(PAUSE);
  }
}
