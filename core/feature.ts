/** What a feature brings, as one value in the list of a composition. */
import type { Hono } from "hono";
import type { Job } from "./author/job.ts";
import type { TaskFeature } from "./jobs/task-feature.ts";

/** A feature of the worker. */
export interface WorkerFeature extends TaskFeature {
  readonly name: string;
  /** Whether jobs of this kind have the feature. Default: all kinds have it. */
  isFor?(job: Job): boolean;
  /** The functions, by name, whose tasks it executes itself. */
  readonly functions?: readonly string[];
  /** Adds routes to the port that serves the worker's health. */
  routes?(app: Hono): void;
  /** Called before tasks arrive. @throws {Error} if the worker must not run */
  open?(signal: AbortSignal): Promise<void>;
  /** Called when the worker has stopped. */
  close?(): Promise<void>;
}
