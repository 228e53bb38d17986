import * as z from "zod";

export const sharedResonateVariables = {
  /** `1`: the account's own Resonate server answers workers elsewhere, at `/resonate`. */
  RESONATE_PUBLIC: z.string().exactOptional(),
  /** Workers elsewhere, as a JSON list of `{"sha256"}`. */
  RESONATE_TOKENS: z.string().exactOptional(),
};
