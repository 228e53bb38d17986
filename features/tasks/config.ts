import * as z from "zod";

export const taskVariables = {
  /** Seals task ids; at least 32 characters, unchanged for as long as tasks live. Without it the server offers no tasks. */
  TASK_KEY: z.string().min(32).optional(),
};
