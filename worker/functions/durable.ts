import { inspect } from "node:util";
import type { Context } from "@resonatehq/sdk/async";
import type { Job } from "../../functions/jobs/job.ts";
import { ProtocolFailure } from "../../functions/jobs/journal.ts";
import type { Logger } from "../logger.ts";

/**
 * The code of a job. It runs from the start again after every sleep and after a crash: what has an effect or may differ
 * the second time belongs into `ctx.run`, whose outcome is kept, and nothing but `ctx`'s promises may be awaited.
 *
 * It returns what JSON can hold, or throws; the message of what it throws is what the caller is told. `log` carries the
 * job's name.
 */
export type JobFunction<Args> = (ctx: Context, args: Args, log: Logger) => Promise<unknown>;

/** A job's code as the worker runs it: arguments are those stored in the promise, unchecked. */
export interface DurableFunction {
  readonly name: string;
  /** Whether a job of this name, without its generation, is run by this function. */
  owns(name: string): boolean;
  run(ctx: Context, args: readonly unknown[], log: Logger): Promise<unknown>;
}

/** Ties a job's definition to its code. */
export function durable<Args>(job: Pick<Job<Args>, "func" | "args" | "owns">, run: JobFunction<Args>): DurableFunction {
  return {
    name: job.func,
    owns: (name) => job.owns(name),
    async run(ctx, args, log) {
      const parsed = job.args.safeParse(args[0]);
      if (!parsed.success) {
        const problems = parsed.error.issues.map(({ path, message }) => `${path.join(".")}: ${message}`);
        throw new Error(`not arguments of ${job.func}: ${problems.join("; ")}`);
      }
      return run(ctx, parsed.data, log);
    },
  };
}

const MAX_REASON = 500;

/**
 * What a failed job stores: an Error with a short message and no stack, whatever was thrown. Everyone who may read the
 * job reads it.
 */
export function storedError(thrown: unknown): Error {
  const error = new Error(describe(thrown).slice(0, MAX_REASON) || "failed without giving a reason");
  if (thrown instanceof ProtocolFailure) error.name = thrown.name;
  Object.defineProperty(error, "stack", { value: undefined });
  return error;
}

function describe(thrown: unknown): string {
  try {
    if (thrown === undefined || thrown === null) return "";
    if (typeof thrown === "string") return thrown;
    return thrown instanceof Error ? String(thrown.message) : inspect(thrown, { depth: 1, breakLength: Infinity });
  } catch {
    return ""; // a getter that throws in turn
  }
}
