import * as z from "zod";

export const operatorVariables = {
  /** `local`: anybody at this machine operates the deployment. */
  OPERATE: z.string().exactOptional(),
  /** Operators, as a JSON list of `{"name", "sha256"}`, and the scope of OAuth tokens whose callers are operators. */
  OPERATOR_TOKENS: z.string().exactOptional(),
  OAUTH_OPERATE_SCOPE: z.string().exactOptional(),
};
