/**
 * Loaded into a process of a test's stack before its program, so that the test can move the process's time. `Date` and the
 * global timers follow; `node:timers/promises`, `AbortSignal.timeout` and Node's sockets do not.
 */
import { once } from "node:events";
import { connect } from "node:net";
import { createInterface } from "node:readline";
import { promisify } from "node:util";
import { ahead, CLOCK_VARIABLE, setAhead, shiftDate } from "./shift-date.ts";

const { setTimeout: after, clearTimeout: callOff } = globalThis;
shiftDate();
/** Milliseconds of a monotonic clock that moves with the time. */
const clock = () => performance.now() + ahead;

class Timer {
  readonly #ms: number;
  readonly #then: () => void;
  readonly #isRepeated: boolean;
  #native: NodeJS.Timeout;
  #isRef = true;
  /** In milliseconds of `clock`. */
  due: number;

  constructor(then: () => void, ms: unknown, isRepeated: boolean) {
    const number = Number(ms);
    this.#ms = number >= 1 && number < 2 ** 31 ? number : 1;
    this.#then = then;
    this.#isRepeated = isRepeated;
    this.due = clock() + this.#ms;
    this.#native = this.#arm();
  }

  #arm(): NodeJS.Timeout {
    timers.add(this);
    const native = after(() => this.#fire(), Math.max(this.due - clock(), 0));
    return this.#isRef ? native : native.unref();
  }

  #fire(): void {
    timers.delete(this);
    if (this.#isRepeated) this.refresh();
    this.#then();
  }

  /** Rearms the timer after the time was moved. */
  moved(): void {
    callOff(this.#native);
    this.#native = this.#arm();
  }

  refresh(): this {
    this.due = clock() + this.#ms;
    this.moved();
    return this;
  }

  close(): this {
    callOff(this.#native);
    timers.delete(this);
    return this;
  }

  ref(): this {
    this.#isRef = true;
    this.#native.ref();
    return this;
  }

  unref(): this {
    this.#isRef = false;
    this.#native.unref();
    return this;
  }

  hasRef(): boolean {
    return this.#isRef;
  }

  [Symbol.toPrimitive](): number {
    byNumber.set(Number(this.#native), this);
    return Number(this.#native);
  }

  [Symbol.dispose](): void {
    this.close();
  }
}

/** Timers that have not fired. */
const timers = new Set<Timer>();
/** Timers that were converted to a number, which may be passed to `clearTimeout`. */
const byNumber = new Map<number, Timer>();

type Callback = (...args: unknown[]) => void;
const timer =
  (isRepeated: boolean) =>
  (then: Callback, ms?: unknown, ...args: unknown[]) =>
    new Timer(() => then(...args), ms, isRepeated);
const clear = (given: unknown) => {
  if (given instanceof Timer) given.close();
  else if (byNumber.has(Number(given))) byNumber.get(Number(given))?.close();
  else callOff(given as NodeJS.Timeout);
};

const setMovedTimeout = Object.assign(timer(false), {
  [promisify.custom]: (ms?: number, value?: unknown) =>
    new Promise((resolve) => setMovedTimeout(() => resolve(value), ms)),
});
Object.assign(globalThis, {
  setTimeout: setMovedTimeout,
  setInterval: timer(true),
  clearTimeout: clear,
  clearInterval: clear,
});

function move(to: number): void {
  setAhead(to);
  for (const each of [...timers].sort((a, b) => a.due - b.due)) each.moved();
}

// The test sends by how many milliseconds the time is ahead, and gets an answer when this process has followed.
const socket = connect(Number(process.env[CLOCK_VARIABLE]), "127.0.0.1");
await once(socket, "connect");
const lines = createInterface({ input: socket });
const first = once(lines, "line");
lines.on("line", (line) => {
  move(Number(line));
  socket.write("moved\n");
});
await first;
socket.on("error", () => {}); // The test has ended, and so will this process.
socket.unref();
