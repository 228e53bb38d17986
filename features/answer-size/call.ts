/** Bounds the size of answers: a larger one becomes an error that says so. */
import {
  ANSWER_SUBJECT,
  type CallFeature,
  type CallToolResult,
  isToolAnswer,
  MAX_ANSWER,
  type ToolAnswer,
} from "../../core/tools/index.ts";

export const answerSize: CallFeature = {
  call:
    ({ job, maxAnswer = MAX_ANSWER }) =>
    async (_call, next) => {
      const result = await next();
      if (!isToolAnswer(result)) return result;
      // The content of a wrapped server's answer has a limit for each of its types.
      const answer = job?.returnsToolResult ? result : withinLimit(result, maxAnswer);
      const { media } = result[ANSWER_SUBJECT] ?? {};
      return media ? { ...answer, content: [...answer.content, ...media] } : answer;
    },
};

/** The result, or an error if it has more characters than `maxAnswer`. */
function withinLimit(result: ToolAnswer, maxAnswer: number): CallToolResult {
  // Most results are clearly short enough. Others have to be serialized to be measured.
  const isShort = result.content.every((part) => part.type !== "text" || part.text.length < maxAnswer / 4);
  if (isShort && result.content.length < 10) return result;
  const { length } = JSON.stringify(result);
  if (length <= maxAnswer) return result;
  const job = result[ANSWER_SUBJECT]?.job;
  const ofJob = job === undefined ? "" : ` It is about ${job}, which is not changed by this.`;
  const text = `The answer would have ${length} characters; up to ${maxAnswer} are sent.${ofJob} Ask for less at a time.`;
  return { isError: true, content: [{ type: "text", text }] };
}
