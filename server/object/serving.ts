import type { Notes } from "./tables.ts";

const NOTE = "serving";

/**
 * Tells an instance of the object when another one has replaced it. When the platform replaces an instance, for a new version
 * of the code for example, the old instance may keep its open streams for a while, but all news goes out from the new one. So
 * each instance notes in the storage that it serves streams, and the next instance withdraws the note.
 */
export class Serving {
  readonly #notes: Notes;
  readonly #instance = crypto.randomUUID();
  #isNoted = false;

  constructor(notes: Notes) {
    this.#notes = notes;
    if (notes.get(NOTE)) notes.set(NOTE, "");
  }

  begin(): void {
    if (this.#isNoted) return;
    this.#notes.set(NOTE, this.#instance);
    this.#isNoted = true;
  }

  /** Whether another instance has started since. */
  get isOver(): boolean {
    try {
      return this.#notes.get(NOTE) !== this.#instance;
    } catch {
      return true; // The platform has taken the storage from this instance.
    }
  }
}
