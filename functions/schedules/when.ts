/** When a schedule fires, as it is asked for and kept. */
import * as z from "zod";

/** When a schedule fires: by one of the three. */
export const When = z.object({
  /** Five fields: minute, hour, day of the month, month, day of the week. */
  cron: z.string().optional(),
  /** By an IANA name. Default: UTC. */
  timezone: z.string().optional(),
  /** In seconds, counted from `from`. */
  every: z.number().optional(),
  /** Milliseconds since the epoch. */
  from: z.number().optional(),
  /** Once, ISO 8601. */
  at: z.string().optional(),
});
export type When = z.infer<typeof When>;
