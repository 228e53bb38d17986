import type { ResonateClient } from "../../core/resonate/connection/client.ts";
import { KeptFiles } from "../../features/files/kept-files.ts";
import { type FileBindings, locationInWorkers } from "../../features/files/location-in-workers.ts";
import { sweepInSteps } from "../../features/files/sweep.ts";
import { logError } from "./log.ts";
import type { Notes } from "./tables.ts";

/** How many files one alarm looks at, with up to three requests each: the free plan allows 50 requests. */
const STEPS = 15;

const DAY = 86_400_000;

interface FileSweepParts {
  env: FileBindings;
  client: ResonateClient;
  notes: Notes;
  /** How long ended jobs are kept, in milliseconds: any file of a removed job is older. Default: forever. */
  keep: number | undefined;
}

/** Sweeps the files of an account once a day, a part at each alarm. (Runners do not sweep, unlike workers.) */
export class FileSweep {
  readonly #parts: FileSweepParts;
  readonly #pause: number;
  #due: number;
  #isRunning = false;
  #steps: AsyncGenerator<number> | undefined;

  constructor(parts: FileSweepParts) {
    const { env, notes, keep = DAY } = parts;
    this.#parts = parts;
    this.#pause = Math.min(keep, DAY);
    const keepsFiles = env.FILES !== undefined || env.FILES_URL?.startsWith("http");
    // The noted time may be too late if the retention was longer when it was noted.
    this.#due = keepsFiles
      ? Math.min(Number(notes.get("files") ?? 0), Date.now() + this.#pause)
      : Number.POSITIVE_INFINITY;
  }

  /** The time of the next part, in milliseconds since the epoch. */
  get due(): number {
    return this.#isRunning ? Number.POSITIVE_INFINITY : this.#due;
  }

  /** Does one part of the sweep if it is due. Never rejects. */
  async run(): Promise<void> {
    if (Date.now() < this.due) return;
    this.#isRunning = true;
    let isOver = true;
    try {
      isOver = await this.#isOver();
    } catch (error) {
      logError("files were not swept", { err: error });
    }
    if (isOver) {
      this.#steps = undefined;
      this.#due = Date.now() + this.#pause;
    }
    this.#isRunning = false;
  }

  async #isOver(): Promise<boolean> {
    const { env, client, notes } = this.#parts;
    const location = locationInWorkers(env);
    if (!location) return true;
    this.#steps ??= sweepInSteps(new KeptFiles(location), client, { unfinished: DAY, gone: this.#pause });
    for (let n = 0; n < STEPS; n++) {
      if (!(await this.#steps.next()).done) continue;
      notes.set("files", String(Date.now() + this.#pause));
      return true;
    }
    return false;
  }
}
