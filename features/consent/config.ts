import * as z from "zod";

export const consentVariables = {
  /**
   * Whether an argument counts by which a model states that the user agreed: `on`, from clients that cannot ask their user;
   * `always`, from all clients; `off` removes such arguments.
   */
  CONFIRM_ARGUMENTS: z.enum(["on", "off", "always"]).default("on"),
};
