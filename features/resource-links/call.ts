/** Adds links to results that an answer only summarizes. Revisions before 2025-06-18 have no links in results. */
import type { CallFeature } from "../../core/tools/call-feature.ts";
import { ANSWER_SUBJECT, isToolAnswer } from "../../core/tools/present.ts";
import { knowsLinks } from "../../core/tools/results.ts";

export const resourceLinks: CallFeature = {
  call: () => async (call, next) => {
    const result = await next();
    const links = (isToolAnswer(result) && result[ANSWER_SUBJECT]?.links) || [];
    if (links.length === 0 || !isToolAnswer(result) || !knowsLinks(call.request.scope.request.headers)) return result;
    return { ...result, content: [...result.content, ...links] };
  },
};
