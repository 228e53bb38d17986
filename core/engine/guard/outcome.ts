/** The promise that a call of the context returns, which knows whether anything awaits it. */
export class Outcome<T> extends Promise<T> {
  isAwaited = false;
}

// `await` and `then` first read the `constructor` of a promise. The answer makes this one a plain promise to them.
Object.defineProperty(Outcome.prototype, "constructor", {
  get(this: Outcome<unknown>) {
    this.isAwaited = true;
    return Promise;
  },
});
