import type * as z from "zod";

/** The key that tells an event from a partial result among the outputs of a job. */
export const EVENT = "durable-mcp:event";

/** Stands among the outputs for one that the job had no room for: readers pass it. */
export const LEFT_OUT = { [EVENT]: "" };

/**
 * A type of events that a job sends with `ctx.event`.
 *
 * @example
 * const priceChanged: EventDefinition<{ price: number }> = event({ name: "price.changed", payload: z.object({ price: z.number() }) });
 */
export interface EventDefinition<Payload = unknown> {
  readonly name: string;
  readonly payload: z.ZodType<Payload>;
}

/**
 * Defines a type of events, for `events` in a definition. Callers subscribe to it by its name.
 *
 * @throws {Error} unless the name has up to 100 letters, digits, `_`, `-` and `.`, and begins with a letter, not with `job.`
 *
 * @example
 * const priceChanged = event({ name: "price.changed", payload: z.object({ price: z.number() }) });
 */
export function event<Payload>(options: EventDefinition<Payload>): EventDefinition<Payload> {
  if (!/^(?!job\.)[A-Za-z][\w.-]{0,99}$/.test(options.name))
    throw new Error(
      `An event's name has up to 100 letters, digits, "_", "-" and ".", and does not begin with "job.", unlike ${JSON.stringify(options.name)}.`,
    );
  return options;
}
