import type * as z from "zod";

/** The key by which an event is told from a partial result among what a job has told. */
export const EVENT = "durable-mcp:event";

/**
 * A type of events that a job tells with `ctx.event`.
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
 * @throws {Error} for a name that cannot be one: it has up to 100 letters, digits, `_`, `-` and `.`, and does not begin with `job.`
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
