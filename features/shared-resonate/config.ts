import * as z from "zod";
import { TokenList } from "../../functions/auth/auth-config.ts";

export const sharedResonateVariables = {
  /** `1`: the account's own Resonate server answers workers elsewhere, at `/resonate`. */
  RESONATE_PUBLIC: z.string().exactOptional(),
  /** Workers elsewhere, as a JSON list of `{"sha256"}`. */
  RESONATE_TOKENS: TokenList.exactOptional(),
};
