import type { ResonateClient } from "../../core/resonate/index.ts";
import { FileStorage } from "./kept-files.ts";
import { type FileBindings, locationInWorkers } from "./location-in-workers.ts";
import { sweepInSteps } from "./sweep.ts";

/** How many files one alarm checks, with up to three requests each: the free plan allows 50 requests. */
const MAX_STEPS_PER_ALARM = 15;

const DAY_MS = 86_400_000;

/** What is stored, by name. */
interface Notes {
  get(name: string): string | undefined;
  set(name: string, value: string): void;
}

interface AccountSweepOptions {
  env: FileBindings;
  client: ResonateClient;
  /** Keeps the time of the next sweep. */
  notes: Notes;
  /** How long finished jobs are kept, in milliseconds: any file of a removed job is older. Default: forever. */
  retention: number | undefined;
  onFailure(error: unknown): void;
}

/** Sweeps the files of an account once a day, a part at each alarm. (Runners do not sweep, unlike workers.) */
export class AccountSweep {
  readonly #options: AccountSweepOptions;
  /** The time between two sweeps, in milliseconds. */
  readonly #interval: number;
  #nextSweepAt: number;
  #isRunning = false;
  #steps: AsyncGenerator<number> | undefined;

  constructor(options: AccountSweepOptions) {
    const { env, notes, retention = DAY_MS } = options;
    this.#options = options;
    this.#interval = Math.min(retention, DAY_MS);
    const hasFiles = env.FILES !== undefined || env.FILES_URL?.startsWith("http");
    // The noted time may be too late if the retention was longer when it was noted.
    this.#nextSweepAt = hasFiles
      ? Math.min(Number(notes.get("files") ?? 0), Date.now() + this.#interval)
      : Number.POSITIVE_INFINITY;
  }

  /** The time of the next part, in milliseconds since the epoch. */
  get nextSweepAt(): number {
    return this.#isRunning ? Number.POSITIVE_INFINITY : this.#nextSweepAt;
  }

  /** Does one part of the sweep if it is due. Never rejects. */
  async run(): Promise<void> {
    if (Date.now() < this.nextSweepAt) return;
    this.#isRunning = true;
    let isComplete = true;
    try {
      isComplete = await this.#continue();
    } catch (error) {
      this.#options.onFailure(error);
    }
    if (isComplete) {
      this.#steps = undefined;
      this.#nextSweepAt = Date.now() + this.#interval;
    }
    this.#isRunning = false;
  }

  /** Sweeps the next files; true if there are no more. */
  async #continue(): Promise<boolean> {
    const { env, client, notes } = this.#options;
    const location = locationInWorkers(env);
    if (!location) return true;
    this.#steps ??= sweepInSteps(new FileStorage(location), client, {
      unfinishedMs: DAY_MS,
      orphanedMs: this.#interval,
    });
    for (let n = 0; n < MAX_STEPS_PER_ALARM; n++) {
      if (!(await this.#steps.next()).done) continue;
      notes.set("files", String(Date.now() + this.#interval));
      return true;
    }
    return false;
  }
}
