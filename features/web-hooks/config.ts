import * as z from "zod";
import { binding } from "../../functions/http/variables.ts";

export const webHookVariables = {
  /** Reaches public addresses alone, for web hooks: on one machine a network of workerd; an account does not need it. */
  CALLBACKS: binding<{ fetch: typeof fetch }>(),
  /** `1`, for development: web hooks may be sent to this machine, without encryption too. */
  ALLOW_LOOPBACK_CALLBACKS: z.string().exactOptional(),
};
