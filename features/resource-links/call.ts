/** Adds links to results that an answer only summarizes. Revisions before 2025-06-18 have no links in results. */
import { ANSWER_SUBJECT, type CallFeature, isToolAnswer, knowsLinks } from "../../core/tools/index.ts";

export const resourceLinks: CallFeature = {
  call: () => async (call, next) => {
    const result = await next();
    const links = (isToolAnswer(result) && result[ANSWER_SUBJECT]?.links) || [];
    if (links.length === 0 || !isToolAnswer(result) || !knowsLinks(call.request.scope.request.headers)) return result;
    return { ...result, content: [...result.content, ...links] };
  },
};
