import { list } from "../../functions/http/variables.ts";

export const blockedCallerVariables = {
  /** Callers who are refused: names of static tokens, subjects of OAuth tokens, or labels as the log has them. */
  BLOCKED_CALLERS: list.optional(),
};
