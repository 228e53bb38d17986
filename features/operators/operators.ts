/** The variables that give a deployment operators; any one of them is enough. */
export interface OperatorEnv {
  /** A JSON list of `{"name", "sha256"}`, as `npm run token` prints them. */
  OPERATOR_TOKENS?: string;
  /** The scope of OAuth tokens whose callers are operators. */
  OAUTH_OPERATE_SCOPE?: string;
  /** `local`: without authentication, everyone on this machine is an operator. */
  OPERATE?: string;
}

/** Whether there are operators. Nobody else reads reports. */
export const hasOperators = ({ OPERATOR_TOKENS, OAUTH_OPERATE_SCOPE, OPERATE }: OperatorEnv): boolean =>
  Boolean(OPERATOR_TOKENS || OAUTH_OPERATE_SCOPE || OPERATE);
