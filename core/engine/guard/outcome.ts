/** What a call of the context returns: a promise that knows whether anything awaits it. */
export class Outcome<T> extends Promise<T> {
  isAwaited = false;
}

// Whatever awaits a promise, or goes on with it, asks it for its constructor first. It is a plain promise to them.
Object.defineProperty(Outcome.prototype, "constructor", {
  get(this: Outcome<unknown>) {
    this.isAwaited = true;
    return Promise;
  },
});
