import type { Job } from "./job.ts";
import { timer } from "./timer.ts";
import { weather } from "./weather.ts";

export * from "./job.ts";
export * from "./timer.ts";
export * from "./weather.ts";

/** What tells jobs apart. */
export type JobKind = Pick<Job<unknown>, "func" | "owns">;

/** Every job of the deployment. An id that belongs to none of them is foreign, whatever lives on the Resonate server. */
const JOBS: readonly JobKind[] = [weather, timer];

/**
 * The job a name belongs to, or undefined for a name that no job here could have made. `name` may carry a generation
 * (`timer_tea~2`).
 */
export function jobOf(name: string): JobKind | undefined {
  const { base } = splitGeneration(name);
  return JOBS.find((job) => job.owns(base));
}

/** `timer_tea~3` is the third generation of `timer_tea`; the first carries no suffix. */
export function splitGeneration(name: string): { base: string; generation: number } {
  const match = /^(.*)~([1-9]\d{0,8})$/s.exec(name);
  if (!match?.[1] || match[2] === "1") return { base: name, generation: 1 };
  return { base: match[1], generation: Number(match[2]) };
}

export function withGeneration(base: string, generation: number): string {
  return generation === 1 ? base : `${base}~${generation}`;
}
