import * as z from "zod";

export const eventVariables = {
  /** `sketch`: the Events extension's errors have the codes of the sketch that preceded it, for clients that know no others. */
  EVENT_ERRORS: z.enum(["sep", "sketch"]).default("sep"),
};
