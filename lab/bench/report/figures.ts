import { median, quantile } from "simple-statistics";

/** The median, quartiles and number of several measurements. */
export interface Spread {
  median: number;
  q1: number;
  q3: number;
  n: number;
}

/** @throws {Error} without values */
export function spreadOf(values: number[]): Spread {
  return { median: median(values), q1: quantile(values, 0.25), q3: quantile(values, 0.75), n: values.length };
}

/** A value that was measured once. */
export const exactly = (value: number): Spread => spreadOf([value]);

export interface Target {
  /** Whether `value` is the lowest or the highest accepted value. */
  at: "least" | "most";
  value: number;
}

export const atLeast = (value: number): Target => ({ at: "least", value });
export const atMost = (value: number): Target => ({ at: "most", value });

export function isMet({ at, value }: Target, measured: number): boolean {
  return at === "least" ? measured >= value : measured <= value;
}

export interface Figure extends Spread {
  name: string;
  unit: string;
  target?: Target;
}

export function figure(name: string, unit: string, spread: Spread, target?: Target): Figure {
  return { name, unit, ...spread, ...(target && { target }) };
}
