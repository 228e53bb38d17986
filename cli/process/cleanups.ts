/** What is to be undone at the end, last first. Node has `AsyncDisposableStack` from 24 on only. */
export class Cleanups implements AsyncDisposable {
  #all: (() => unknown)[] = [];

  defer(cleanup: () => unknown): void {
    this.#all.push(cleanup);
  }

  use<T extends AsyncDisposable>(value: T): T {
    this.defer(() => value[Symbol.asyncDispose]());
    return value;
  }

  /** Hands everything over to a new object, so that the end of this one undoes nothing. */
  move(): Cleanups {
    const cleanups = new Cleanups();
    cleanups.#all = this.#all.splice(0);
    return cleanups;
  }

  /** @throws the first error, after everything was tried */
  async [Symbol.asyncDispose](): Promise<void> {
    const errors: unknown[] = [];
    for (const cleanup of this.#all.splice(0).reverse()) {
      try {
        await cleanup();
      } catch (error) {
        errors.push(error);
      }
    }
    if (errors.length > 0) throw errors[0];
  }
}
