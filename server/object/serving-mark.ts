import type { Notes } from "./tables.ts";

const MARK_KEY = "serving";

/**
 * Reveals to an instance of the object that another one has replaced it. When the platform replaces an instance, for a new version
 * of the code for example, the old instance may keep its open streams for a while, but all news goes out from the new one. So
 * each instance notes in the storage that it serves streams, and the next instance withdraws the note.
 */
export class ServingMark {
  readonly #notes: Notes;
  readonly #instance = crypto.randomUUID();
  #isSet = false;

  constructor(notes: Notes) {
    this.#notes = notes;
    if (notes.get(MARK_KEY)) notes.set(MARK_KEY, "");
  }

  set(): void {
    if (this.#isSet) return;
    this.#notes.set(MARK_KEY, this.#instance);
    this.#isSet = true;
  }

  get isReplaced(): boolean {
    try {
      return this.#notes.get(MARK_KEY) !== this.#instance;
    } catch {
      return true; // The platform has taken the storage from this instance.
    }
  }
}
