import * as z from "zod";
import { TokenList } from "../../functions/auth/auth-config.ts";

export const operatorVariables = {
  /** `local`: anybody at this machine operates the deployment. */
  OPERATE: z.string().exactOptional(),
  /** Operators, as a JSON list of `{"name", "sha256"}`, and the scope of OAuth tokens whose callers are operators. */
  OPERATOR_TOKENS: TokenList.exactOptional(),
  OAUTH_OPERATE_SCOPE: z.string().exactOptional(),
};
