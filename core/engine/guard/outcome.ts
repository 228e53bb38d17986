/** What a call of the context returns: a promise that knows whether anything awaits it. */
export class Outcome<T> extends Promise<T> {
  isAwaited = false;
}

// `await` and `then` ask a promise for its constructor first. To them this is a plain promise.
Object.defineProperty(Outcome.prototype, "constructor", {
  get(this: Outcome<unknown>) {
    this.isAwaited = true;
    return Promise;
  },
});
