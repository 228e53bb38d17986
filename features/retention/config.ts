import * as z from "zod";
import { DAYS_PATTERN } from "../../core/jobs/index.ts";

export const retentionVariables = {
  /** How many days jobs are kept after their end, or `forever`, if that is known. */
  RETENTION_DAYS: z.string().regex(DAYS_PATTERN, "must be a number of days above 0, or `forever`").exactOptional(),
};
