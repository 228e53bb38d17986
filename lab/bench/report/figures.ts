import { median, quantile } from "simple-statistics";

/** Several measurements of one thing: the middle one, the quarters around it, and how many there were. */
export interface Spread {
  median: number;
  q1: number;
  q3: number;
  n: number;
}

/** @throws {Error} when there are no values */
export function spreadOf(values: number[]): Spread {
  return { median: median(values), q1: quantile(values, 0.25), q3: quantile(values, 0.75), n: values.length };
}

/** A value that was read off or counted once. */
export const exactly = (value: number): Spread => spreadOf([value]);

export interface Target {
  /** Which side of `value` is the right one; the value itself is. */
  at: "least" | "most";
  value: number;
}

export const atLeast = (value: number): Target => ({ at: "least", value });
export const atMost = (value: number): Target => ({ at: "most", value });

export function isMet({ at, value }: Target, measured: number): boolean {
  return at === "least" ? measured >= value : measured <= value;
}

/** One measured figure. */
export interface Figure extends Spread {
  name: string;
  unit: string;
  target?: Target;
}

export function figure(name: string, unit: string, spread: Spread, target?: Target): Figure {
  return { name, unit, ...spread, ...(target && { target }) };
}
