/** Leaves out texts that repeat the structured content, for clients whose address of the server has `?text=once`. */
import { type CallFeature, isToolAnswer, type ToolAnswer } from "../../core/tools/index.ts";

export const textOnce: CallFeature = {
  call: () => async (call, next) => {
    const result = await next();
    if (!isToolAnswer(result)) return result;
    const { searchParams } = new URL(call.request.scope.request.url);
    return searchParams.get("text") === "once" ? withoutCopy(result) : result;
  },
};

function withoutCopy({ content, ...rest }: ToolAnswer): ToolAnswer {
  const copy = JSON.stringify(rest.structuredContent);
  const once = content.map((part) =>
    part.type === "text" && part.text === copy ? { ...part, text: "In structuredContent." } : part,
  );
  return { ...rest, content: once };
}
