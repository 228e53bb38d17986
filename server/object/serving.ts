import type { Notes } from "./tables.ts";

const NOTE = "serving";

/**
 * Which instance of the object serves streams. When the platform replaces an instance, as for a new version of the code, the
 * one before may go on writing to its open streams for a while, and no news would come over them: that goes out from the new
 * one. So each instance notes that it serves, and the next one takes that back.
 */
export class Serving {
  readonly #notes: Notes;
  readonly #instance = crypto.randomUUID();
  #isNoted = false;

  constructor(notes: Notes) {
    this.#notes = notes;
    if (notes.get(NOTE)) notes.set(NOTE, "");
  }

  /** This instance serves a stream from now on. */
  begin(): void {
    if (this.#isNoted) return;
    this.#notes.set(NOTE, this.#instance);
    this.#isNoted = true;
  }

  /** Whether another instance has begun since. */
  get isOver(): boolean {
    try {
      return this.#notes.get(NOTE) !== this.#instance;
    } catch {
      return true; // The platform has taken the storage from this one.
    }
  }
}
