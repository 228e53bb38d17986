/**
 * Loaded into a process of a test's stack before its program, so that the test can move the process's time. `Date` and the
 * global timers follow; `node:timers/promises`, `AbortSignal.timeout` and Node's sockets do not.
 */
import { once } from "node:events";
import { connect } from "node:net";
import { createInterface } from "node:readline";
import { promisify } from "node:util";
import { ahead, CLOCK_VARIABLE, setAhead, shiftDate } from "./shift-date.ts";

const { setTimeout: setNativeTimeout, clearTimeout: clearNativeTimeout } = globalThis;
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
    const delay = Number(ms);
    this.#ms = delay >= 1 && delay < 2 ** 31 ? delay : 1;
    this.#then = then;
    this.#isRepeated = isRepeated;
    this.due = clock() + this.#ms;
    this.#native = this.#arm();
  }

  #arm(): NodeJS.Timeout {
    timers.add(this);
    const native = setNativeTimeout(() => this.#fire(), Math.max(this.due - clock(), 0));
    return this.#isRef ? native : native.unref();
  }

  #fire(): void {
    timers.delete(this);
    if (this.#isRepeated) this.refresh();
    this.#then();
  }

  /** Sets the timer again after the time was moved. */
  rearm(): void {
    clearNativeTimeout(this.#native);
    this.#native = this.#arm();
  }

  refresh(): this {
    this.due = clock() + this.#ms;
    this.rearm();
    return this;
  }

  close(): this {
    clearNativeTimeout(this.#native);
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
const createTimer =
  (isRepeated: boolean) =>
  (then: Callback, ms?: unknown, ...args: unknown[]) =>
    new Timer(() => then(...args), ms, isRepeated);
const clear = (timer: unknown) => {
  if (timer instanceof Timer) timer.close();
  else if (byNumber.has(Number(timer))) byNumber.get(Number(timer))?.close();
  else clearNativeTimeout(timer as NodeJS.Timeout);
};

const setMovedTimeout = Object.assign(createTimer(false), {
  [promisify.custom]: (ms?: number, value?: unknown) =>
    new Promise((resolve) => setMovedTimeout(() => resolve(value), ms)),
});
Object.assign(globalThis, {
  setTimeout: setMovedTimeout,
  setInterval: createTimer(true),
  clearTimeout: clear,
  clearInterval: clear,
});

function move(to: number): void {
  setAhead(to);
  for (const timer of [...timers].sort((a, b) => a.due - b.due)) timer.rearm();
}

// The test sends by how many milliseconds the time is ahead, and gets an answer when this process has followed.
const socket = connect(Number(process.env[CLOCK_VARIABLE]), "127.0.0.1");
await once(socket, "connect");
const lines = createInterface({ input: socket });
const firstLine = once(lines, "line");
lines.on("line", (line) => {
  move(Number(line));
  socket.write("moved\n");
});
await firstLine;
socket.on("error", () => {}); // The test is over, and this process will exit.
socket.unref();
